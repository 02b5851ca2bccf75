"""Perturbations of the token vectors: where they go, how long they are, and what is refused."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from fairtune.core.errors import FairtuneError, ModelError
from fairtune.methods.adversarial.perturbation import adversarial_backward
from tests.methods.attacked import ALL, by_hand, lengths, padded, recorded
from tests.models.architectures import build


@pytest.mark.parametrize("clean", [True, False])
def test_fgm_adds_what_is_computed_by_hand(clean: bool) -> None:
    model, batch = build("bert"), padded()
    loss, gradient = by_hand(model, batch)
    expected = 0.7 * gradient / lengths(gradient)[:, None, None]
    with recorded(model) as seen:
        reported = adversarial_backward(model, batch, epsilon=0.7, clean=clean)
    assert len(seen) == 2, "the pass that gives the gradient, and the one that is perturbed"
    torch.testing.assert_close(seen[1], expected, atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(lengths(seen[1]), torch.full((3,), 0.7))
    assert not seen[0].abs().gt(1e-6).any(), "the first pass is as it is without the method"
    assert not (seen[1].abs() > 1e-6)[batch["attention_mask"] == 0].any(), "nothing at padding"
    worse, _ = by_hand(model, batch, expected)
    assert worse > loss, "the loss rises along the perturbation"
    torch.testing.assert_close(reported, loss if clean else worse)


def test_pgd_takes_the_steps_that_are_computed_by_hand_and_stays_in_the_ball() -> None:
    model, batch = build("bert"), padded()
    delta = torch.zeros(3, 6, 32)
    losses = []
    for _ in range(4):
        loss, gradient = by_hand(model, batch, delta)
        losses.append(float(loss))
        delta = delta + 0.03 * gradient / lengths(gradient)[:, None, None]
        delta = delta * (0.08 / lengths(delta)).clamp(max=1)[:, None, None]
    with recorded(model) as seen:
        adversarial_backward(model, batch, "pgd", steps=4, step_size=0.03, epsilon=0.08)
    assert len(seen) == 5, "the clean pass gives the first gradient, three more give the others, and one learns"
    torch.testing.assert_close(seen[-1], delta, atol=1e-5, rtol=1e-3)
    torch.testing.assert_close(lengths(seen[1]), torch.full((3,), 0.03))
    assert (lengths(seen[-1]) <= 0.08 + 1e-6).all()
    assert losses == sorted(losses)


def test_freelb_starts_in_the_ball_and_moves_by_the_gradient_of_the_same_pass() -> None:
    model, batch = build("bert"), padded()
    torch.manual_seed(5)
    with recorded(model) as seen:
        adversarial_backward(model, batch, "freelb", steps=3, step_size=0.1, epsilon=0.6)
    assert len(seen) == 3
    delta, real = seen[0], batch["attention_mask"].bool()
    assert (delta.abs() <= 0.6 / (real.sum(1) * 32).sqrt()[:, None, None] + 1e-6).all()
    torch.testing.assert_close(lengths(delta), torch.full((3,), 0.6 / 3**0.5), atol=0.03, rtol=0)
    for now, following in itertools.pairwise(seen):
        _, gradient = by_hand(model, batch, now)
        expected = now + 0.1 * gradient / lengths(gradient)[:, None, None]
        torch.testing.assert_close(following, expected, atol=1e-5, rtol=1e-3)
    assert not any((delta.abs() > 1e-6)[~real].any() for delta in seen)


def test_all_passes_of_freelb_have_the_same_dropout() -> None:
    model, batch = build("bert").train(), padded()
    masks: list[Tensor] = []
    dropout = model.bert.encoder.layer[0].output.dropout
    hook = dropout.register_forward_hook(lambda _, given, output: masks.append((output == 0) & (given[0] != 0)))
    adversarial_backward(model, batch, "freelb", step_size=0.5, epsilon=2.0)
    adversarial_backward(model, batch, "pgd")
    hook.remove()
    assert torch.equal(masks[0], masks[1]) and torch.equal(masks[1], masks[2]), "as published"  # noqa: PT018
    assert not torch.equal(masks[3], masks[4]), "while FGM and PGD draw it again"


def test_frozen_embeddings_are_perturbed_too() -> None:
    model, batch = build("bert"), padded()
    with recorded(model) as trained:
        adversarial_backward(model, batch)
    model.bert.embeddings.requires_grad_(False)
    with recorded(model) as frozen:
        adversarial_backward(model, batch)
    torch.testing.assert_close(frozen[1], trained[1])


def test_bad_input_is_reported() -> None:
    model, batch = build("bert"), padded()
    with pytest.raises(FairtuneError, match=r"unknown method 'fmg'; allowed: fgm, pgd, freelb\. Did you mean 'fgm'\?"):
        adversarial_backward(model, batch, "fmg")  # type: ignore[arg-type]
    with pytest.raises(FairtuneError, match="epsilon: Input should be greater than or equal to 0"):
        adversarial_backward(model, batch, epsilon=-1)
    with pytest.raises(FairtuneError, match=r"steps: Extra inputs are not permitted. Fields: epsilon"):
        adversarial_backward(model, batch, steps=3)
    with pytest.raises(FairtuneError, match="gave no loss; put `labels` into the batch"):
        adversarial_backward(model, {name: part for name, part in batch.items() if name != "labels"})
    vectors = model.get_input_embeddings()(batch["input_ids"]).detach()
    rest = {name: part for name, part in batch.items() if name != "input_ids"}
    for settings in ALL:
        with pytest.raises(ModelError, match="give it `input_ids`, not `inputs_embeds`"):
            adversarial_backward(model, {"inputs_embeds": vectors, **rest}, **settings)
    square = batch["attention_mask"].bool()[:, None, :].expand(3, 6, 6)[:, None]
    with pytest.raises(ModelError, match="the mask must be \\[batch, length\\]"):
        adversarial_backward(model, {**batch, "attention_mask": square})
