"""What is learned from perturbed tokens, and that nothing else is touched: no parameter, no padding, no other batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fairtune.methods.adversarial.perturbation import adversarial_backward
from fairtune.models.model_parts import token_embeddings
from tests.methods.attacked import ALL, OUTPUT, by_hand, gradients, lengths, padded, recorded
from tests.models.architectures import build, inputs


@pytest.mark.parametrize("clean", [True, False])
def test_the_gradients_are_the_clean_ones_and_the_perturbed_ones_or_these_alone(clean: bool) -> None:
    model, batch = build("bert"), padded()
    model(**batch).loss.backward()
    plain = gradients(model)
    _, gradient = by_hand(model, batch)
    delta = gradient / lengths(gradient)[:, None, None]
    hook = token_embeddings(model).register_forward_hook(lambda _, __, output: output + delta)
    model(**batch).loss.backward()
    hook.remove()
    moved = gradients(model)
    adversarial_backward(model, batch, clean=clean)
    for name, found in gradients(model).items():
        expected = moved[name] + plain[name] if clean else moved[name]
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-3, msg=name)


@pytest.mark.parametrize("clean", [True, False])
def test_freelb_learns_from_the_mean_of_its_passes(clean: bool) -> None:
    model, batch = build("bert"), padded()
    torch.manual_seed(5)
    with recorded(model) as seen:
        reported = adversarial_backward(model, batch, "freelb", clean=clean)
    found, deltas = gradients(model), seen[1:] if clean else seen
    total = sum(by_hand(model, batch, delta)[0] for delta in deltas) / 3
    torch.testing.assert_close(reported, by_hand(model, batch)[0] if clean else total)
    for delta in deltas:
        hook = token_embeddings(model).register_forward_hook(lambda _, __, output, delta=delta: output + delta)
        (model(**batch).loss / 3).backward()
        hook.remove()
    if clean:
        model(**batch).loss.backward()
    for name, expected in gradients(model).items():
        torch.testing.assert_close(found[name], expected, atol=1e-6, rtol=1e-3, msg=name)


@pytest.mark.parametrize("settings", ALL, ids=str)
@pytest.mark.parametrize("fails_at", [1, 2])
def test_after_an_exception_too(settings: dict[str, Any], fails_at: int) -> None:
    model, batch = build("bert"), padded()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    passes = 0

    def fail() -> Tensor:
        nonlocal passes
        loss: Tensor = model(**batch).loss
        passes += 1
        if passes == fails_at:
            raise KeyError("in the middle of a pass")
        return loss

    with pytest.raises(KeyError):
        adversarial_backward(model, batch, forward=fail, **settings)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("settings", OUTPUT, ids=str)
def test_padding_changes_no_gradient(settings: dict[str, Any]) -> None:
    model, found = build("bert"), []
    for more in (0, 5):
        torch.manual_seed(1)
        adversarial_backward(model, padded(more), **settings)
        found.append(gradients(model))
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, atol=1e-6, rtol=1e-3, msg=name)


@pytest.mark.parametrize("settings", OUTPUT, ids=str)
@pytest.mark.parametrize("name", ["gpt2-classifier", "t5", "deberta-v3"])
def test_other_architectures_learn_from_perturbed_tokens_too(name: str, settings: dict[str, Any]) -> None:
    model = build(name)
    batch = inputs(model, 6) | {"labels": inputs(model, 6)["input_ids"]}
    if model.config.num_labels == 2 and "Classification" in type(model).__name__:
        batch["labels"] = torch.tensor([0, 1])
    model(**batch).loss.backward()
    plain = gradients(model)
    adversarial_backward(model, batch, **settings)
    found = gradients(model)
    assert found.keys() == plain.keys()
    assert all(gradient.isfinite().all() for gradient in found.values())
    assert any(not torch.allclose(found[name], plain[name], rtol=1e-2) for name in plain)


@pytest.mark.parametrize("settings", ALL, ids=str)
def test_a_loss_scaler_and_half_precision_give_the_gradients_of_fp32(settings: dict[str, Any]) -> None:
    model, batch = build("bert"), padded()
    torch.manual_seed(1)
    adversarial_backward(model, batch, **settings)
    exact = gradients(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)

    def forward() -> Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            loss: Tensor = model(**batch).loss
        return loss

    torch.manual_seed(1)
    scaled = {"backward": lambda loss: scaler.scale(loss).backward(), "scale": scaler.get_scale()}
    adversarial_backward(model, batch, forward=forward, **scaled, **settings)
    scaler.unscale_(torch.optim.SGD(model.parameters()))
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(
            gradient, exact[name], atol=0.05 * float(exact[name].abs().max()) + 1e-4, rtol=0, msg=name
        )


def tables_seen(model: Any, batch: dict[str, Tensor], **settings: Any) -> list[Tensor]:
    """How far the table is moved in each pass."""
    table, seen = model.get_input_embeddings(), []
    start = table.weight.detach().clone()
    hook = table.register_forward_hook(lambda *_: seen.append((table.weight - start).detach()))
    adversarial_backward(model, batch, target="table", **settings)
    hook.remove()
    assert torch.equal(table.weight, start)
    return seen


def table_gradient(model: Any, batch: dict[str, Tensor], delta: Tensor | float = 0.0) -> Tensor:
    weight = model.get_input_embeddings().weight
    with torch.no_grad():
        weight += delta
    (gradient,) = torch.autograd.grad(model(**batch).loss, weight)
    with torch.no_grad():
        weight -= delta
    return gradient


@pytest.mark.parametrize("clean", [True, False])
def test_fgm_moves_the_whole_table_by_one_norm(clean: bool) -> None:
    model, batch = build("bert"), padded()
    expected = table_gradient(model, batch)
    seen = tables_seen(model, batch, epsilon=0.5, clean=clean)
    assert len(seen) == 2
    assert not seen[0].any()
    torch.testing.assert_close(seen[1], 0.5 * expected / expected.norm(), atol=1e-6, rtol=1e-3)
    assert float(seen[1].norm()) == pytest.approx(0.5, rel=1e-4)


def test_it_is_the_gradient_of_this_batch_not_of_those_before_it() -> None:
    model, batch = build("bert"), padded()
    other = {**batch, "input_ids": batch["input_ids"].flip(0), "labels": 1 - batch["labels"]}
    alone = tables_seen(model, other)[1]
    last = gradients(model)
    adversarial_backward(model, batch, target="table")
    first = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    torch.testing.assert_close(tables_seen(model, other)[1], alone)
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, first[name] + last[name], atol=1e-6, rtol=1e-4, msg=name)
