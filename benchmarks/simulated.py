"""Simulated studies for benchmarks/fairness.py: test examples of unequal difficulty, arms, seeds, and their luck.

An example is answered correctly where ability exceeds difficulty. Difficulty is mostly shared by all runs, in part by the
runs of one arm, in part a run's own; ability is that of the arm and its seed's luck. Verdicts are the product's own
(`paired_difference`, `holm`), but for one thing: the variance that the product estimates from 2,000 bootstrap draws is
computed here as what infinitely many draws give, which for accuracies has a closed form and is 100 times as quick.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import stats

from fairtune.analysis import statistics
from fairtune.analysis.resampling import Classified
from fairtune.analysis.statistics import PairedDifference, Summary
from fairtune.settings.metrics import METRICS

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class World:
    """What is true of a simulated study.

    Args:
        seed_sd: standard deviation of an arm's accuracy over seeds, as a share (.01 is one point).
        shared, own: shares of difficulty that all runs and the runs of one arm have in common.
        sample_sd: standard deviation of accuracy over training samples, which all arms of a seed share.
        resampled: each seed draws its own sample; else all seeds have the same one.
    """

    examples: int = 1000
    seed_sd: float = 0.01
    accuracy: float = 0.85
    shared: float = 0.80
    own: float = 0.02
    sample_sd: float = 0.0
    resampled: bool = True

    def arm(
        self,
        generator: np.random.Generator,
        difficulty: Floats,
        seeds: int,
        gain: float = 0.0,
        sample: npt.NDArray[np.float64] | float = 0.0,
    ) -> Floats:
        """Which examples each seed of an arm answers correctly, [seeds, examples].

        Args:
            sample: what the training sample of each seed adds to its accuracy.
        """
        easy = float(stats.norm.ppf(self.accuracy + gain))
        luck = (self.seed_sd * generator.standard_normal(seeds) + sample) / float(stats.norm.pdf(easy))
        alike = math.sqrt(self.shared) * difficulty + math.sqrt(self.own) * _normal(generator, self.examples)
        noise = math.sqrt(1 - self.shared - self.own) * _normal(generator, seeds, self.examples)
        return ((easy + luck[:, None]) > alike + noise).astype(np.float32)

    def study(self, generator: np.random.Generator, seeds: int, gains: Sequence[float]) -> list[Floats]:
        """A reference and an arm for each gain over it."""
        difficulty = _normal(generator, self.examples)
        sample = self.sample_sd * generator.standard_normal(seeds if self.resampled else 1) if self.sample_sd else 0.0
        return [self.arm(generator, difficulty, seeds, gain, sample) for gain in (0.0, *gains)]

    @property
    def mean(self) -> float:
        """The reference's accuracy over all seeds, samples and examples there could be."""
        easy = float(stats.norm.ppf(self.accuracy))
        luck = (self.seed_sd**2 + self.sample_sd**2) / float(stats.norm.pdf(easy)) ** 2
        return float(stats.norm.cdf(easy / math.sqrt(1 + luck)))


def _normal(generator: np.random.Generator, *shape: int) -> Floats:
    return generator.standard_normal(shape, dtype=np.float32)


@dataclass(frozen=True)
class Hits(Classified):
    """A run of which only the hits are known."""

    hits: Floats = field(default_factory=lambda: np.zeros(0, np.float32))


def compare(ours: Floats, theirs: Floats, confidence: float = 0.95, own_samples: bool = False) -> PairedDifference:
    """The product's comparison of two arms, from their hits [seeds, examples].

    Args:
        own_samples: each seed has a training sample of its own.
    """
    nothing = np.zeros(ours.shape[1], np.int64)
    ours_scored, theirs_scored = ([Hits(nothing, nothing, 2, hits=run) for run in arm] for arm in (ours, theirs))
    by_seed = (ours.mean(axis=1, dtype=np.float64) - theirs.mean(axis=1, dtype=np.float64)).tolist()
    kept, statistics.bootstrap_variance = statistics.bootstrap_variance, limit_variance  # type: ignore[assignment]
    try:
        return statistics.paired_difference(
            ours_scored, theirs_scored, "accuracy", by_seed, confidence, _most_times(own_samples)
        )
    finally:
        statistics.bootstrap_variance = kept


def _most_times(own_samples: bool) -> float:
    return statistics.OWN_SAMPLES if own_samples else statistics.MOST_TIMES


def summarise(arm: Floats, confidence: float = 0.95, own_samples: bool = False) -> Summary:
    """The product's figures of one arm, from its hits [seeds, examples]."""
    nothing = np.zeros(arm.shape[1], np.int64)
    scores = arm.mean(axis=1, dtype=np.float64).tolist()
    return statistics.summarise_arm(
        scores, _variance(arm), Classified(nothing, nothing, 2), METRICS["accuracy"].bounds, confidence,
        _most_times(own_samples),
    )  # fmt: skip


def limit_variance(ours: Sequence[Hits], theirs: Sequence[Hits], _metric: str) -> float:
    """What `bootstrap_variance` tends to for accuracies with more and more draws."""
    return _variance(np.stack([a.hits - b.hits for a, b in zip(ours, theirs, strict=True)]))


def _variance(gains: Floats) -> float:
    """Of the mean over seeds and examples, [seeds, examples]."""
    seeds, examples = gains.shape
    means, squares = gains.mean(axis=1, dtype=np.float64), np.square(gains).mean(axis=1, dtype=np.float64)
    alone = float((squares - means**2).mean()) / examples
    together = float(np.var(gains.mean(axis=0), dtype=np.float64)) / examples
    interaction = max(0.0, (alone - together) / (seeds - 1))
    return max(together, together + float(np.var(means, ddof=1)) / seeds - interaction)
