"""R-Drop: the doubled batch, the published divergence, and what is done when there is no dropout."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

from fairtune.core.errors import RunFailure
from fairtune.methods.focal import FocalLoss
from fairtune.methods.rdrop import LOOKS, RDrop, RDropConfig, divergence, rdrop_loss, twice


def drawn(rows: int = 4, classes: int = 3) -> tuple[Tensor, Tensor]:
    """Logits of a doubled batch, and its labels."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(classes, (rows,), generator=generator)
    return torch.randn(2 * rows, classes, generator=generator, dtype=torch.float64), torch.cat([labels, labels])


def test_every_example_comes_a_second_time_behind_the_batch() -> None:
    batch = {
        "input_ids": torch.arange(6).reshape(3, 2), "labels": torch.tensor([0, 1, 0]), "weights": torch.rand(3),
        "table": torch.rand(5, 3), "number": torch.tensor(3),
    }  # fmt: skip
    doubled = twice(batch)
    assert doubled["input_ids"].tolist() == [[0, 1], [2, 3], [4, 5]] * 2
    assert doubled["labels"].tolist() == [0, 1, 0] * 2
    assert doubled["weights"].shape == (6,)
    assert doubled["table"] is batch["table"], "what is not by example stays"
    assert doubled["number"] is batch["number"]
    assert batch["labels"].tolist() == [0, 1, 0], "the batch itself is left alone"


def test_it_is_the_mean_of_both_directions_over_the_examples() -> None:
    logits, labels = drawn()
    p, q = logits[:4].log_softmax(1), logits[4:].log_softmax(1)
    both = [kl_div(a, b, reduction="batchmean", log_target=True) for a, b in ((p, q), (q, p))]
    torch.testing.assert_close(divergence(logits), (both[0] + both[1]) / 2)
    expected = (cross_entropy(logits[:4], labels[:4]) + cross_entropy(logits[4:], labels[4:])) / 2
    torch.testing.assert_close(rdrop_loss(logits, labels, 3.0), expected + 3 * (both[0] + both[1]) / 2)
    torch.testing.assert_close(rdrop_loss(logits, labels, 0.0), cross_entropy(logits, labels))
    focal = rdrop_loss(logits, labels, 1.0, FocalLoss(2))
    torch.testing.assert_close(focal, FocalLoss(2)(logits, labels) + (both[0] + both[1]) / 2)


def test_gradients_go_into_both_passes() -> None:
    logits, labels = drawn()
    logits.requires_grad_()
    assert torch.autograd.gradcheck(divergence, logits)
    assert torch.autograd.gradcheck(lambda z: rdrop_loss(z, labels, 2.0), logits)
    (gradient,) = torch.autograd.grad(divergence(logits), logits)
    assert (gradient.abs().sum(1) > 0).all()


def run_steps(method: RDrop, logits: list[Tensor], total: int) -> None:
    for number, each in enumerate(logits, start=1):
        method.penalty(SimpleNamespace(logits=each), {})
        moment: Any = SimpleNamespace(step=number, total_steps=total)
        method.after_step(moment)


def test_a_model_without_dropout_is_refused_after_a_few_steps() -> None:
    same = torch.ones(4, 2)
    run_steps(RDrop(RDropConfig()), [same] * (LOOKS - 1), 100)
    with pytest.raises(RunFailure, match=r"in 10 steps the two passes .* never differed.* no dropout"):
        run_steps(RDrop(RDropConfig()), [same] * LOOKS, 100)
    with pytest.raises(RunFailure, match="in 3 steps"):
        run_steps(RDrop(RDropConfig()), [same] * 3, 3)


def test_a_head_that_starts_at_zero_is_not_taken_for_a_model_without_dropout() -> None:
    logits, _ = drawn()
    run_steps(RDrop(RDropConfig()), [torch.zeros(8, 3), logits, *[torch.zeros(8, 3)] * 20], 22)
