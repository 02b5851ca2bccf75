"""Focal loss: its formula, cross entropy as a special case, and exactness however sure the model is."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fairtune.core.errors import DataError
from fairtune.methods.base import TrainingData
from fairtune.methods.focal import Focal, FocalConfig, FocalLoss

GAMMAS = [0.0, 0.1, 0.5, 1.0, 2.0, 5.0]


def drawn(rows: int = 7, classes: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(classes)
    logits = 3 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(classes, (rows,), generator=generator)


def by_hand(logits: Tensor, labels: Tensor, gamma: float, alpha: list[float] | None) -> float:
    """The published formula, one example after the other."""
    total = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        p = math.exp(row[label]) / sum(map(math.exp, row))
        total -= (1.0 if alpha is None else alpha[label]) * (1 - p) ** gamma * math.log(p)
    return total / len(labels)


@pytest.mark.parametrize("classes", [2, 3, 20])
@pytest.mark.parametrize("gamma", GAMMAS)
def test_it_is_the_published_formula(gamma: float, classes: int) -> None:
    logits, labels = drawn(classes=classes)
    weights = [0.5 + i for i in range(classes)]
    for alpha in (None, weights):
        assert float(FocalLoss(gamma, alpha)(logits, labels)) == pytest.approx(by_hand(logits, labels, gamma, alpha))


@pytest.mark.parametrize("gamma", GAMMAS)
def test_gradients_are_those_of_the_value(gamma: float) -> None:
    logits, labels = drawn()
    assert torch.autograd.gradcheck(lambda z: FocalLoss(gamma, [1.0, 0.3, 2.0])(z, labels), logits.requires_grad_())


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_at_gamma_zero_it_is_cross_entropy_in_value_and_gradient(scale: float, dtype: torch.dtype) -> None:
    logits, labels = drawn(classes=4)
    found, expected = ((logits * scale).to(dtype).requires_grad_() for _ in range(2))
    loss = FocalLoss(0)(found, labels)
    same = cross_entropy(expected.float() if dtype == torch.bfloat16 else expected, labels)
    torch.testing.assert_close(loss, same)
    loss.backward(), same.backward()
    torch.testing.assert_close(found.grad, expected.grad)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("far", [-1e4, -100.0, -20.0, 0.0, 20.0, 100.0, 1e4])
@pytest.mark.parametrize("gamma", GAMMAS)
def test_value_and_gradient_are_exact_at_both_ends(gamma: float, far: float, classes: int) -> None:
    """`far`: how many nats the right class is above the other; what the loss and its slope are there is known."""
    logits = torch.full((1, classes), -1e4 - abs(far))
    logits[0, 0], logits[0, 1] = -far, 0.0  # class 1 is right
    logits.requires_grad_()
    loss = FocalLoss(gamma)(logits, torch.tensor([1]))
    loss.backward()
    gradient = logits.grad
    assert gradient is not None
    log_p = -math.log1p(math.exp(-far)) if far > -700 else far
    log_rest = -math.log1p(math.exp(far)) if far < 700 else -far
    p, rest = math.exp(log_p), math.exp(gamma * log_rest)
    slope = rest * (math.exp(log_rest) - gamma * p * log_p)
    assert float(loss.detach()) == pytest.approx(-rest * log_p, rel=1e-5, abs=1e-37)
    assert gradient[0].tolist() == pytest.approx([slope, -slope, 0.0][:classes], rel=1e-5, abs=1e-37)


def test_what_does_not_go_together_is_refused() -> None:
    logits, labels = drawn()
    with pytest.raises(DataError, match="2 weights were given, but the logits are of 3 classes"):
        FocalLoss(2, 0.25)(logits, labels)


def method(**settings: Any) -> Focal:
    made = Focal(FocalConfig(**settings))
    made.begin(TrainingData(("no", "yes"), (30, 10)))
    return made


@pytest.mark.parametrize(
    ("alpha", "weights"),
    [
        (0.25, [0.75, 0.25]),
        (1, [0, 1]),
        ([1, 1.3], [1, 1.3]),
        ({"yes": 3, "no": 2}, [2, 3]),
        ("balanced", [2 / 3, 2.0]),
    ],
)
def test_the_method_weighs_classes_as_its_settings_say(alpha: Any, weights: list[float]) -> None:
    logits, labels = drawn(classes=2)
    found = method(alpha=alpha).loss(Outputs(logits), {"labels": labels})
    torch.testing.assert_close(found, FocalLoss(2, weights)(logits, labels))


class Outputs:
    def __init__(self, logits: Tensor) -> None:
        self.logits = logits
