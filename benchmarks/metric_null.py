"""How often metrics of rankings and probabilities call a difference where there is none.

Two arms rank equally well: an example's difficulty is mostly shared, in part an arm's own and a run's own, and each seed is a
little better or worse and leans a little to one class. Verdicts are the product's own (`paired_difference`, 2,000 draws), at 5 %.

    python benchmarks/metric_null.py --studies 400
"""

from __future__ import annotations

import argparse

import numpy as np

from fairtune.analysis.resampling import scored
from fairtune.analysis.statistics import paired_difference
from fairtune.ledger.predictions import Predictions
from fairtune.settings.metrics import classification_metrics

NAMES = ("accuracy", "f1", "roc_auc", "average_precision", "log_loss", "brier", "calibration_error")


def made_arm(generator: np.random.Generator, labels: np.ndarray, hard: np.ndarray, seeds: int) -> list[Predictions]:
    n = len(labels)
    own = hard + 0.3 * generator.normal(size=n)
    skill, lean = 1 + 0.15 * generator.normal(size=(seeds, 1)), 0.15 * generator.normal(size=(seeds, 1))
    odds = (2 * labels - 1) * skill + own + lean + 0.5 * generator.normal(size=(seeds, n))
    return [Predictions((), labels, np.stack([np.zeros(n), run], axis=1).astype(np.float32)) for run in odds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--positive", type=float, default=0.3, help="share of the second class")
    given = parser.parse_args()
    print(
        f"% of {given.studies} null studies with p < .05; {given.examples} test examples, {given.positive:.0%} positive"
    )
    print("seeds", *(f"{name:>17}" for name in NAMES))
    for seeds in (3, 5):
        generator, called = np.random.default_rng(17), dict.fromkeys(NAMES, 0)
        for _ in range(given.studies):
            labels = (generator.random(given.examples) < given.positive).astype(np.int64)
            hard = generator.normal(size=given.examples)
            sides = [made_arm(generator, labels, hard, seeds) for _ in range(2)]
            values = [[classification_metrics(run.labels, run.scores) for run in side] for side in sides]
            for name in NAMES:
                by_seed = [a[name] - b[name] for a, b in zip(*values, strict=True)]
                ours, theirs = ([scored(run, name) for run in side] for side in sides)
                p = paired_difference(ours, theirs, name, by_seed, 0.95).p
                called[name] += p is not None and p < 0.05
        print(f"{seeds:5}", *(f"{100 * called[name] / given.studies:17.1f}" for name in NAMES), flush=True)


if __name__ == "__main__":
    main()
