"""What tuning did: what each arm tried, what was chosen and at what cost, and who would win with less of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.core.cautions import Caution
from fairtune.core.numbers import as_percent, plural, setting
from fairtune.ledger.trials import TrialScores, count_others, read_trials
from fairtune.settings.metrics import METRICS

DRAWS, SEED = 2000, 20261117
DRAWN = "drawn"


@dataclass(frozen=True)
class BestOf:
    """The validation score to expect of the best of so many trials.

    Args:
        low, high: what it is between in 95 % of draws of that many trials, and of their seeds.
    """

    trials: int
    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class TunedArm:
    """What an arm tried.

    Args:
        chosen: the name of the trial whose settings it has.
        own: fields of its methods that it chose too, which other arms do not have.
        best: the trial that its scores name; not the chosen one only where the ledger was changed by hand.
        curve: by number of trials.
    """

    arm: str
    trials: tuple[TrialScores, ...]
    chosen: str
    point: dict[str, Any]
    own: tuple[str, ...]
    best: str | None
    curve: tuple[BestOf, ...]


@dataclass(frozen=True)
class StudyTuning:
    """How a study's settings were chosen.

    Args:
        fields: that every arm chose.
        budget: what trials trained with instead.
        seconds: of all trials' runs.
        share: of the tokens that trials and reported runs trained on together, times the passes of their methods; None before any
            run has been reported.
        others: runs of trials on disk that the choice does not rest on.
        complete: whether the trials are still on record.
    """

    arms: dict[str, TunedArm]
    fields: tuple[str, ...]
    seeds: tuple[int, ...]
    budget: dict[str, Any]
    sampler: str
    borrow: bool
    runs: int
    seconds: float
    share: float | None
    others: int
    complete: bool

    def __str__(self) -> str:
        counts = sorted({len(arm.trials) for arm in self.arms.values()})
        trials = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}" if counts else "0"
        cost = f", cost {as_percent(self.share)} of the study" if self.share is not None else ""
        many = "trial" if trials == "1" else "trials"
        return f"tuned: {trials} {many} x {plural(len(self.seeds), 'seed')} on validation{cost}"


def read_tuning(runs: Path, study: str, plan: Mapping[str, Any], reported: float) -> StudyTuning | None:
    """How the settings of a plan were chosen; None where they are as given.

    Args:
        reported: tokens that the reported runs trained on, times the passes of their methods.
    """
    record = plan.get("tuning")
    if not isinstance(record, dict):
        return None
    trials = read_trials(runs, study, str(record["plan"]))
    known, metric = trials or [], str(plan["task"]["metric"])
    seconds, work = sum(trial.seconds for trial in known), sum(trial.work for trial in known)
    return StudyTuning(
        arms={arm: _tuned_arm(arm, own, known, metric) for arm, own in record["arms"].items()},
        fields=tuple(record["fields"]),
        seeds=tuple(record["seeds"]),
        budget=dict(record["budget"]),
        sampler=str(record["sampler"]),
        borrow=bool(record["borrow"]),
        runs=int(record["runs"]),
        seconds=seconds,
        share=work / (work + reported) if work and reported else None,
        others=count_others(runs, study, known),
        complete=bool(known) and all(trial.ended for trial in known),
    )


def _tuned_arm(arm: str, record: Mapping[str, Any], known: Sequence[TrialScores], metric: str) -> TunedArm:
    trials = [trial for trial in known if trial.arm == arm]
    lower = METRICS[metric].lower_is_better
    whole = [trial for trial in trials if trial.share == 1 and trial.mean is not None]
    best = min(whole, key=lambda trial: _rank(trial, lower), default=None)
    return TunedArm(
        arm=arm,
        trials=tuple(trials),
        chosen=str(record["trial"]),
        point=dict(record["chosen"]),
        own=tuple(record["own"]),
        best=best.name if best else None,
        curve=expect_best([list(t.scores.values()) for t in whole if t.origin == DRAWN], lower),
    )


def _rank(trial: TrialScores, lower: bool) -> float:
    if trial.mean is None or math.isnan(trial.mean):
        return math.inf
    return trial.mean if lower else -trial.mean


def expect_best(scores: Sequence[Sequence[float]], lower_is_better: bool) -> tuple[BestOf, ...]:
    """The score to expect of the best of k trials, for every k up to how many there are.

    The expectation is over all choices of k of the trials (Dodge and others 2019, without replacement), so that no trial counts
    twice; the interval is over choices of trials and of their seeds.

    Args:
        scores: of each trial, by seed; all have the same seeds.
    """
    if not scores:
        return ()
    sign = -1.0 if lower_is_better else 1.0
    seeds = min(len(own) for own in scores)
    table = sign * np.array([list(own)[:seeds] for own in scores])
    count, generator = len(table), np.random.default_rng(SEED)
    ranked = np.sort(table.mean(axis=1))
    drawn = table[:, generator.integers(seeds, size=(DRAWS, seeds))].mean(axis=2).T
    order = generator.permuted(np.tile(np.arange(count), (DRAWS, 1)), axis=1)
    best = np.maximum.accumulate(np.take_along_axis(drawn, order, axis=1), axis=1)
    found = []
    for k in range(1, count + 1):
        chances = np.array([math.comb(place, k - 1) for place in range(count)]) / math.comb(count, k)
        ends = sign * np.quantile(best[:, k - 1], (0.025, 0.975))
        found.append(BestOf(k, float(sign * (chances @ ranked)), float(ends.min()), float(ends.max())))
    return tuple(found)


def tuning_cautions(tuning: StudyTuning | None) -> Iterator[Caution]:
    """What is wrong with how settings were chosen."""
    if tuning is None:
        return
    wrong = [arm.arm for arm in tuning.arms.values() if arm.best is not None and arm.best != arm.chosen]
    if wrong:
        yield Caution(
            "warning", "choice-not-best", f"{', '.join(wrong)}: the settings are not those of the best trial on record",
            "settings were chosen by hand, or the trials were changed", "Run the study again in another folder",
        )  # fmt: skip
    if not tuning.complete:
        yield Caution(
            "warning", "trials-missing", "the trials by which settings were chosen are not all on record",
            "the choice cannot be checked", "Restore the study's `tuning` folder, or run the study again, which tunes it again",
        )  # fmt: skip
    if tuning.others:
        yield Caution(
            "note", "other-trials", f"{tuning.others} more runs of trials are on record, of another space, budget or seeds",
            "tuning again after a look at results is more tuning than is stated here", "Nothing needs to be done",
        )  # fmt: skip


def point_text(point: Mapping[str, Any]) -> str:
    """Settings in a line: lr 1e-4, warmup 0.1."""
    return ", ".join(f"{name} {setting(value)}" for name, value in point.items()) or "as given"
