"""Weighted cross entropy and label smoothing: torch's definitions, in single precision, and the settings that do nothing."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fairtune.methods.base import TrainingData
from fairtune.methods.label_smoothing import LabelSmoothing, LabelSmoothingConfig
from fairtune.methods.weighted_ce import WeightedCE, WeightedCEConfig, weighted_cross_entropy

LOGITS = torch.tensor([[0.0, math.log(3)], [math.log(9), 0.0], [0.0, 0.0]], dtype=torch.float64)
LABELS = torch.tensor([1, 1, 0])  # p = .75, .1 and .5
EACH = [-math.log(p) for p in (0.75, 0.1, 0.5)]


def weighted(weights: Any, counts: tuple[int, int] = (30, 10)) -> Tensor | None:
    method = WeightedCE(WeightedCEConfig(weights=weights))
    method.begin(TrainingData(("no", "yes"), counts))
    return method.loss(SimpleNamespace(logits=LOGITS), {"labels": LABELS})


def test_an_example_counts_by_the_weight_of_its_class_over_the_sum_of_weights() -> None:
    expected = (1.3 * EACH[0] + 1.3 * EACH[1] + EACH[2]) / 3.6
    assert float(weighted_cross_entropy(LOGITS, LABELS, [1, 1.3])) == pytest.approx(expected)
    for given in ([1, 1.3], {"yes": 1.3, "no": 1}, [2, 2.6]):
        assert float(weighted(given) or 0) == pytest.approx(expected), "only the ratio of weights matters"


def test_balanced_weights_come_from_the_training_examples() -> None:
    expected = (3 * EACH[0] + 3 * EACH[1] + EACH[2]) / 7
    assert float(weighted("balanced") or 0) == pytest.approx(expected)


def test_equal_weights_leave_the_loss_to_the_model() -> None:
    assert weighted([2, 2]) is None
    assert weighted({"no": 1, "yes": 1}) is None
    assert weighted("balanced", (20, 20)) is None
    assert WeightedCEConfig(weights=(2, 2)).idle
    assert not WeightedCEConfig().idle
    assert not WeightedCEConfig(weights=(1, 1.3)).idle
    almost = weighted_cross_entropy(LOGITS, LABELS, [0.7, 0.7])
    torch.testing.assert_close(almost, cross_entropy(LOGITS, LABELS))


def smoothed(smoothing: float, logits: Tensor = LOGITS, labels: Tensor = LABELS) -> Tensor | None:
    return LabelSmoothing(LabelSmoothingConfig(smoothing=smoothing)).loss(
        SimpleNamespace(logits=logits), {"labels": labels}
    )


def test_smoothing_spreads_a_share_of_the_target_over_all_classes() -> None:
    each = zip((0.75, 0.1, 0.5), (0.25, 0.9, 0.5), strict=True)
    expected = sum(-0.95 * math.log(own) - 0.05 * math.log(other) for own, other in each) / 3
    assert float(smoothed(0.1) or 0) == pytest.approx(expected)


@pytest.mark.parametrize("far", [100.0, 1e4])
def test_extreme_logits_of_half_precision_stay_finite(far: float) -> None:
    logits = torch.tensor([[far, -far], [-far, far]], dtype=torch.bfloat16, requires_grad=True)
    labels = torch.tensor([0, 0])
    for loss in (weighted_cross_entropy(logits, labels, [1, 1.3]), smoothed(0.1, logits, labels)):
        assert loss is not None
        assert loss.dtype == torch.float32
        assert float(loss.detach()) == pytest.approx(far, rel=0.01), "of two examples one is wrong by 2 far"
        (gradient,) = torch.autograd.grad(loss, logits)
        assert torch.isfinite(gradient).all()
        assert gradient[1].tolist() == pytest.approx([-0.475, 0.475], abs=0.03)
