"""Draws are counted by one matrix product for many seeds, or seed by seed: the same to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from fairtune.analysis import resampling
from fairtune.analysis.resampling import TOGETHER, Classified, bootstrap_variances, metric_from_totals


@pytest.mark.parametrize("classes", [2, 4, 5])
@pytest.mark.parametrize("seeds", [2, TOGETHER + 3])
def test_both_ways_give_the_same_bits(classes: int, seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(classes)
    labels = generator.integers(0, classes, 60)
    said = [[np.where(generator.random(60) < 0.8, labels, 0) for _ in range(seeds)] for _ in range(2)]
    sides = [[Classified(labels, one, classes) for one in side] for side in said]
    weights = generator.multinomial(60, np.full(60, 1 / 60), size=7).astype(np.float64)
    found = np.concatenate(list(resampling._totals(sides[0], weights)))
    assert (found == np.stack([one.totals(weights) for one in sides[0]])).all()
    figures = {name: metric_from_totals(name) for name in ("accuracy", "macro_f1", "mcc")}
    variances = bootstrap_variances(sides[0], sides[1], figures, 300)
    monkeypatch.setattr(resampling, "FEW_CELLS", 0)
    monkeypatch.setattr(resampling, "TOGETHER", 1)
    anew = [[Classified(labels, one, classes) for one in side] for side in said]
    assert bootstrap_variances(anew[0], anew[1], figures, 300) == variances


def test_an_arm_that_many_are_compared_with_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 2, 60)
    said = {
        name: [np.where(generator.random(60) < 0.8, labels, 0) for _ in range(3)] for name in ("ours", "other", "base")
    }

    def made(name: str) -> list[Classified]:
        return [Classified(labels, one, 2) for one in said[name]]

    figures, base, drawn = {"accuracy": metric_from_totals("accuracy")}, made("base"), set()
    totals = resampling._totals
    monkeypatch.setattr(
        resampling, "_totals", lambda side, weights: drawn.update(map(id, side)) or totals(side, weights)
    )
    first = bootstrap_variances(made("ours"), base, figures, 300)
    assert {id(one) for one in base} <= drawn
    drawn.clear()
    second = bootstrap_variances(made("other"), base, figures, 300)
    assert not {id(one) for one in base} & drawn
    assert first == bootstrap_variances(made("ours"), made("base"), figures, 300)
    assert second == bootstrap_variances(made("other"), made("base"), figures, 300)
    assert bootstrap_variances(base, None, figures, 300) == bootstrap_variances(made("base"), None, figures, 300)
