"""A pair of arms: the runs that they share, what the difference between them is, and what it hangs on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairtune.analysis.collapses import chance_score, is_collapsed
from fairtune.analysis.ledger_runs import LedgerRun, difference_of
from fairtune.analysis.looks import EXTENSION, MOST
from fairtune.analysis.missing_runs import count_missing, stand_in
from fairtune.analysis.resampling import compared_value
from fairtune.analysis.statistics import (
    MOST_TIMES,
    OWN_SAMPLES,
    PairedDifference,
    no_difference,
    paired_difference,
)
from fairtune.analysis.study_facts import StudyFacts
from fairtune.analysis.verdicts import Schedule, Verdict
from fairtune.core.errors import LedgerError
from fairtune.settings.few_labels import is_resampled
from fairtune.settings.learners import MAJORITY
from fairtune.settings.metrics import METRICS, title_of

PRIMARY, SECONDARY, DESCRIPTIVE, COPY, SIMPLE = "primary", "secondary", "descriptive", "A/A", "simple baseline"
METHODS, SETTINGS, BOTH, NOTHING, LEARNING = "methods", "settings", "methods and settings", "nothing", "learning"
ENDED = ("finished", "failed", "damaged")
"""States in which no more is to come of a run."""
FEWEST = 2
"""Seeds from which on results show a difference at all."""


@dataclass(frozen=True)
class Comparison:
    """An arm against another over the seeds that both have.

    Args:
        found: on the scale on which the metric is compared: of perplexities, differences of logarithms.
        confounds: settings, other than methods, in which the two differ.
        slowdown: ratio of step times, from the timing experiment; None where there was none.
        role: primary, secondary, descriptive, A/A or simple baseline.
        about: in what the two differ: methods, settings, both, nothing (A/A), or learning, where one of them is not fine-tuned.
        means: of the metric over the shared seeds, ours and theirs.
        margin: a loss that would not matter, in the metric's unit.
        improvement: the share of all pairs of runs, one of each arm, in which ours is better; ties count half.
        missing: runs of either arm that ended without a score.
        without_collapsed: the same without the seeds in which a run of either did not learn; None where all did.
        looks: seeds at which verdicts could be taken before.
        matched: the same against the other arm with the settings that ours chose; None where both chose the same, or as given.
    """

    arm: str
    reference: str
    found: PairedDifference
    verdict: Verdict
    confounds: tuple[str, ...]
    slowdown: float | None
    role: str = PRIMARY
    about: str = METHODS
    means: tuple[float, float] = (math.nan, math.nan)
    margin: float | None = None
    improvement: float | None = None
    missing: tuple[str, ...] = ()
    without_collapsed: tuple[PairedDifference, Verdict] | None = None
    ratios: bool = False
    looks: tuple[int, ...] = ()
    matched: Comparison | None = None

    def shown(self, value: float | None) -> float | None:
        """A value of the compared scale as a difference in the metric's unit."""
        if value is None or not math.isfinite(value):
            return None
        return self.means[1] * math.expm1(min(value, 700.0)) if self.ratios else value

    @property
    def difference(self) -> float | None:
        return self.shown(self.found.difference)

    @property
    def alone(self) -> tuple[float | None, float | None]:
        """The interval of this comparison by itself."""
        return self.shown(self.found.low), self.shown(self.found.high)

    @property
    def family(self) -> tuple[float | None, float | None]:
        """The interval that the whole family shares."""
        low, high = self.verdict.family
        return self.shown(low), self.shown(high)

    @property
    def seed_share(self) -> float | None:
        """The share of the variance that comes from seeds; the rest is that of the test examples."""
        if self.found.p is None or not self.found.total_variance:
            return None
        return min(1.0, self.found.seed_variance / self.found.total_variance)


class ArmPair:
    """Two arms that are compared."""

    def __init__(self, study: StudyFacts, arm: str, other: str) -> None:
        self.study, self.arm, self.other = study, arm, other
        theirs = {run.seed: run for run in study.finished(other)}
        self.pairs = [(run, theirs[run.seed]) for run in study.finished(arm) if run.seed in theirs]
        a, b = compared_settings(study, arm, other)
        # what means nothing to a learner is no difference from it
        shared = [name for name in a if name in b or not is_simple_pair(study, arm, other)]
        self.confounds = tuple(name for name in shared if a[name] != b.get(name))
        self.missing = tuple(
            f"{run.arm}/seed-{run.seed}" for run in study.runs if run.arm in (arm, other) and self._is_lost(run)
        )

    def difference(self, seeds: set[int] | None = None) -> PairedDifference:
        """The paired difference over the shared seeds, or over some of them."""
        pairs = [pair for pair in self.pairs if seeds is None or pair[0].seed in seeds]
        metric, confidence = self.study.metric, self.study.confidence
        if not pairs:
            return no_difference(0, confidence)
        if reason := difference_of([run.test for pair in pairs for run in pair]):
            raise LedgerError(
                f"{self.study.folder}: runs of {self.arm} and {self.other} {reason}; they cannot be compared."
            )
        if metric not in pairs[0][0].metrics:
            trouble = f"{title_of(metric)} takes test examples of two classes, and there is one"
            return no_difference(len(pairs), confidence, trouble=trouble)
        diverged = [run for pair in pairs for run in pair if not math.isfinite(run.metrics[metric])]
        if diverged:
            names = " and ".join(f"{run.arm}/seed-{run.seed}" for run in diverged)
            trouble = f"the {title_of(metric)} of {names} is not a finite number"
            return no_difference(len(pairs), confidence, trouble=trouble)
        return paired_difference(
            [ours.resampled(metric) for ours, _ in pairs],
            [theirs.resampled(metric) for _, theirs in pairs],
            metric,
            [self._value(ours) - self._value(theirs) for ours, theirs in pairs],
            confidence,
            most_times(self.study, self.arm, self.other),
            float(np.mean([self._score(theirs) for _, theirs in pairs])),
        )

    def _score(self, run: LedgerRun) -> float:
        return run.metrics.get(self.study.metric, math.nan)

    def _value(self, run: LedgerRun) -> float:
        return compared_value(self._score(run), self.study.metric)

    @cached_property
    def looks(self) -> list[set[int]]:
        """The seeds in which both arms had ended each time that seeds were added: what anyone could have looked at before."""
        found: list[set[int]] = []
        for when, seeds in self.study.registration.additions:
            complete = {seed for seed in seeds if all(self._ended(arm, seed, when) for arm in (self.arm, self.other))}
            least = len(found[-1]) + 1 if found else FEWEST
            if least <= len(complete) < len(self._ended_seeds()):
                found.append(complete)
        return found

    def _ended(self, arm: str, seed: int, when: float) -> bool:
        for run in self.study.runs:
            if (run.arm, run.seed) == (arm, seed) and run.status in ENDED:
                ended = run.result.get("time")
                return not isinstance(ended, int | float) or ended < when + 1
        return False

    def _ended_seeds(self) -> set[int]:
        runs = [run for run in self.study.runs if run.arm in (self.arm, self.other)]
        return {run.seed for run in runs} - {run.seed for run in runs if run.status not in ENDED}

    def schedule(self) -> Schedule | None:
        """When verdicts were taken on this pair; None where once, as planned."""
        registration, before = self.study.registration, tuple(len(look) for look in self.looks)
        now = max(1, len(self._ended_seeds()))
        if registration.planned_looks:
            return Schedule((*before, now), registration.most)
        if before:
            return Schedule((*before, now), max(MOST, now), EXTENSION)
        return None if now >= registration.most else Schedule((now,), registration.most)

    def compared_margin(self) -> float | None:
        """The margin on the scale on which differences are taken."""
        margin, base = self.margin(), self.means()[1]
        if margin is None or not METRICS[self.study.metric].ratios:
            return margin
        return math.log1p(margin / base) if base > 0 else None

    def margin(self) -> float | None:
        """The margin in the metric's unit; a share is taken of the mean of the arm that is compared with."""
        return resolve_margin(self.study.registration.compare.get("margin"), self.means()[1])

    def means(self) -> tuple[float, float]:
        ours, theirs = ([self._score(pair[side]) for pair in self.pairs] for side in (0, 1))
        return (float(np.mean(ours)), float(np.mean(theirs))) if ours else (math.nan, math.nan)

    def counted(self, found: PairedDifference, as_chance: bool) -> PairedDifference:
        """The difference with every run counted that ended without a score.

        Args:
            as_chance: as a model that learned nothing; else as far below the worst of its arm as the best lies above it.
        """
        lost = {
            (run.arm, run.seed) for run in self.study.runs if run.arm in (self.arm, self.other) and self._is_lost(run)
        }
        seeds = sorted({seed for _, seed in lost} - {ours.seed for ours, _ in self.pairs})
        if not seeds or found.p is None:
            return found
        sides = [
            (arm, {run.seed: self._value(run) for run in self.study.finished(arm)}) for arm in (self.arm, self.other)
        ]
        kept = [seed for seed in seeds if all(seed in known or (arm, seed) in lost for arm, known in sides)]
        ours, theirs = ([known.get(seed) for seed in kept] for _, known in sides)
        values = [self._stand_in(list(known.values()), as_chance) for _, known in sides]
        return count_missing(found, ours, theirs, (values[0], values[1]))

    def _is_lost(self, run: LedgerRun) -> bool:
        """Whether a run has no score though its turn has come: it ended without one, or its partner of the same seed has one."""
        if run.status == "finished":
            return False
        partner = self.other if run.arm == self.arm else self.arm
        return run.status in ENDED or any(one.seed == run.seed for one in self.study.finished(partner))

    def _stand_in(self, finished: list[float], as_chance: bool) -> float:
        metric = self.study.metric
        if as_chance:
            chance = chance_score(self.pairs[0][0].test, metric, self.study.vocabulary)
            if chance is not None:
                return compared_value(chance, metric)
        return stand_in(finished, METRICS[metric].lower_is_better)

    def other_learned(self) -> bool:
        """Whether the arm that is compared with learned anything, in one of the shared seeds at least."""
        return not self.pairs or any(not self._is_collapsed(theirs) for _, theirs in self.pairs)

    def learned(self) -> set[int] | None:
        """Shared seeds in which both arms learned; None where all did."""
        kept = {pair[0].seed for pair in self.pairs if not any(map(self._is_collapsed, pair))}
        return None if len(kept) == len(self.pairs) else kept

    def _is_collapsed(self, run: LedgerRun) -> bool:
        return counts_as_learned(self.study, run.arm) and is_collapsed(run, self.study.vocabulary, self.study.metric)

    def improvement(self) -> float | None:
        if not self.pairs or any(math.isnan(self._score(run)) for pair in self.pairs for run in pair):
            return None
        sign = -1 if METRICS[self.study.metric].lower_is_better else 1
        ours = sign * np.array([self._value(run) for run, _ in self.pairs])[:, None]
        theirs = sign * np.array([self._value(run) for _, run in self.pairs])[None, :]
        return float(np.mean((ours > theirs) + 0.5 * (ours == theirs)))

    def comparison(
        self,
        found: PairedDifference,
        verdict: Verdict,
        role: str,
        without: tuple[PairedDifference, Verdict] | None = None,
    ) -> Comparison:
        return Comparison(
            self.arm,
            self.other,
            found,
            verdict,
            self.confounds,
            self.study.slowdown(self.arm, self.other),
            role,
            differing_parts(self.study, self.arm, self.other),
            self.means(),
            self.margin(),
            self.improvement(),
            self.missing,
            without,
            METRICS[self.study.metric].ratios,
            tuple(len(look) for look in self.looks),
        )


def most_times(study: StudyFacts, *arms: str) -> float:
    """How far degrees of freedom may exceed those of the seeds: not at all where each seed draws its own training sample."""
    resampled = any(is_resampled(study.settings(arm).get("examples")) for arm in arms)
    return OWN_SAMPLES if resampled else MOST_TIMES


def resolve_margin(stated: str | float | None, mean: float) -> float | None:
    """A margin in the metric's unit; `1.5%` is a share of a mean, and not known before that is."""
    if not isinstance(stated, str):
        return stated
    return float(stated[:-1]) / 100 * abs(mean) if math.isfinite(mean) else None


def is_simple_pair(study: StudyFacts, arm: str, other: str) -> bool:
    """Whether one of two arms is a learner, so that they differ as a whole and not in methods or settings."""
    return study.learner(arm) is not None or study.learner(other) is not None


def counts_as_learned(study: StudyFacts, arm: str) -> bool:
    """Whether an arm is meant to learn anything of the texts: the most frequent class is not."""
    learner = study.learner(arm)
    return learner is None or learner.name != MAJORITY


def compared_settings(study: StudyFacts, arm: str, other: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings by which two arms differ; beside a matched control, what was chosen counts by its value."""
    if any(study.plan["arms"][one].get("matches") for one in (arm, other)):
        return dict(study.plan["arms"][arm]["train"]), dict(study.plan["arms"][other]["train"])
    return study.settings(arm), study.settings(other)


def differing_parts(study: StudyFacts, arm: str, other: str) -> str:
    """In what two arms differ: methods, settings, both, nothing, or in the whole way to learn."""
    if is_simple_pair(study, arm, other):
        return LEARNING
    methods = study.methods(arm) != study.methods(other)
    ours, theirs = compared_settings(study, arm, other)
    settings = any(ours[name] != theirs.get(name) for name in ours)
    return (BOTH if settings else METHODS) if methods else SETTINGS if settings else NOTHING
