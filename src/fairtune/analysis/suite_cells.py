"""The cells of a suite's table: each arm in each study, as the ledger has it, or why there is nothing to count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairtune.analysis.arm_pairs import BOTH, ENDED, ArmPair, Comparison
from fairtune.analysis.resampling import compared_value
from fairtune.analysis.results import Results
from fairtune.analysis.statistics import PairedDifference
from fairtune.analysis.timing_file import mean_times
from fairtune.analysis.timings import StudyTiming
from fairtune.core.errors import FairtuneError
from fairtune.ledger.timings import run_times
from fairtune.settings.metrics import METRICS

COUNTED = "counted"
NOT_RUN, UNFINISHED, FAILED, NO_ARM = "not run", "unfinished", "failed", "no such arm"
UNFIT, UNREADABLE, OTHER_PLAN, FINISHED = "not comparable", "unreadable", "another plan", "finished"
TRIALS = "tuning"


@dataclass(frozen=True)
class PlannedStudy:
    """A study as the suite has it, whether or not anything of it is on disk.

    Args:
        group: what its means are also shown with.
        arms: whether each is a simple baseline.
        trouble: why it could not be run just now.
    """

    study: str
    task: str
    model: str
    metric: str
    group: str
    arms: dict[str, bool]
    reference: str
    confidence: float
    seeds: int
    trouble: str = ""


@dataclass(frozen=True)
class StudyState:
    """A study of a suite as it is on disk.

    Args:
        state: finished, unfinished, not run, unreadable or another plan.
        reason: the state in words, where it is not finished.
        runs: that finished, of those that are planned.
        remarks: what to mind of it, each a sentence.
    """

    study: str
    task: str
    model: str
    group: str
    metric: str
    state: str
    reason: str = ""
    runs: tuple[int, int] = (0, 0)
    failed: int = 0
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ArmCell:
    """An arm in a study: its primary comparison, or why there is none to count.

    Args:
        state: `counted`, or what stands in the way.
        reason: that in words.
        word, note: the study's own verdict.
        found: the primary comparison, on the scale on which the metric is compared.
        matched: the same against the control with this arm's settings, where both chose their own.
        counted: the primary comparison with every run counted that ended without a score.
        margin: a loss that would not matter, on that scale.
        gains: of the runs of both arms on that scale, the higher the better.
        methods: what the arm does, so that two studies can be told to mean the same by its name.
        about: in what the two arms differ.
    """

    study: str
    task: str
    model: str
    group: str
    state: str
    reason: str = ""
    word: str = ""
    note: str = ""
    against: str | None = None
    n: int = 0
    planned: int = 0
    found: PairedDifference | None = None
    matched: PairedDifference | None = None
    counted: PairedDifference | None = None
    margin: float | None = None
    gains: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    methods: str = ""
    about: str = ""

    @property
    def label(self) -> str:
        return f"{self.task}, {self.model}"

    @property
    def is_counted(self) -> bool:
        return self.state == COUNTED


class SuiteLedger:
    """What a runs folder holds of a suite's studies."""

    def __init__(self, planned: Sequence[PlannedStudy], runs: Path) -> None:
        self.planned, self.runs = tuple(planned), Path(runs)
        self._results: dict[str, Results] = {}
        self._troubles: dict[str, str] = {}
        for study in planned:
            if (self.runs / study.study / "study.json").is_file():
                try:
                    self._results[study.study] = Results(self.runs, study.study)
                except FairtuneError as error:
                    self._troubles[study.study] = str(error)
        protocols = [int(one.plan.get("protocol") or 0) for one in self._results.values()]
        self.protocol = max(protocols, default=0)

    def state(self, planned: PlannedStudy) -> StudyState:
        """How far a study is, and whether it may be counted."""
        state, reason = self._standing(planned)
        found = StudyState(planned.study, planned.task, planned.model, planned.group, planned.metric, state, reason)
        results = self._results.get(planned.study)
        if results is None:
            return found
        ended = Counter(run.status for run in results.runs)
        return replace(
            found,
            runs=(ended["finished"], ended.total()),
            failed=ended["failed"] + ended["damaged"],
            remarks=tuple(_remarks(planned, results)),
        )

    def times(self, planned: PlannedStudy) -> list[dict[str, Any]]:
        """What runs of each arm of a study took, and the ratio of a step to its control's where the two were timed."""
        results = self._results.get(planned.study)
        if results is None or self._standing(planned)[0] == OTHER_PLAN:
            return []
        found = []
        for arm in results.arms:
            own = mean_times([run_times(run.result) for run in results.clocked(arm)])  # without events, which take long
            if own is not None:
                kept = {name: value for name, value in own.items() if name not in ("step_cv", "gpu_utilization")}
                found.append({"study": planned.study, "arm": arm, **kept, **_time_ratio(results.timing, arm)})
        return found

    def _standing(self, planned: PlannedStudy) -> tuple[str, str]:
        if planned.study in self._troubles:
            return UNREADABLE, self._troubles[planned.study]
        results = self._results.get(planned.study)
        if results is None:
            begun = (self.runs / planned.study / TRIALS).is_dir()
            why = planned.trouble or ("its trials have begun, no run of it yet" if begun else "")
            return NOT_RUN, why
        if int(results.plan.get("protocol") or 0) != self.protocol:
            why = f"its runs are of protocol {results.plan.get('protocol')}, others here of {self.protocol}"
            return OTHER_PLAN, why
        if results.plan["task"]["name"] != planned.task:
            return OTHER_PLAN, f"on disk it is of the task {results.plan['task']['name']}, not {planned.task}"
        if results.metric != planned.metric:
            return OTHER_PLAN, f"on disk it goes by {results.metric}, not {planned.metric}"
        if results.reference != planned.reference:
            return OTHER_PLAN, f"on disk it is compared to {results.reference}, not {planned.reference}"
        waiting = sum(run.status not in ENDED for run in results.runs)
        if waiting:
            return UNFINISHED, f"{waiting} of {len(results.runs)} runs have not ended"
        return FINISHED, ""

    def cell(self, planned: PlannedStudy, arm: str) -> ArmCell:
        """An arm in a study."""
        empty = ArmCell(planned.study, planned.task, planned.model, planned.group, NO_ARM, planned=planned.seeds)
        if arm not in planned.arms:
            return replace(empty, reason=f"{planned.study} does not have this arm", planned=0)
        state, reason = self._standing(planned)
        if state in (NOT_RUN, UNREADABLE, OTHER_PLAN):
            return replace(empty, state=state, reason=reason)
        results = self._results[planned.study]
        if arm not in results.plan["arms"]:
            return replace(empty, state=NOT_RUN, reason="the plan on disk does not have this arm")
        try:
            comparison = results.comparison(arm)
            pair = None if comparison is None else ArmPair(results, arm, comparison.reference)
        except FairtuneError as error:
            return replace(empty, state=UNREADABLE, reason=str(error))
        if comparison is None or pair is None:
            return replace(empty, state=UNFIT, reason="it is compared with nothing")
        return _filled(empty, results, comparison, pair)


def _time_ratio(timing: StudyTiming | None, arm: str) -> dict[str, Any]:
    """An arm's step against its control's; null where that was not timed, or where nothing follows from it."""
    found = timing.sound_ratio(arm) if timing is not None else None
    if found is None:
        return {"against": None, "ratio": None, "ratio_interval": None}
    return {"against": found.other, "ratio": found.found.ratio, "ratio_interval": [found.found.low, found.found.high]}


def _filled(empty: ArmCell, results: Results, comparison: Comparison, pair: ArmPair) -> ArmCell:
    """A cell with the comparison that its study made."""
    found, runs = comparison.found, [run for run in results.runs if run.arm in (pair.arm, pair.other)]
    cell = replace(
        empty,
        word=comparison.verdict.word,
        note=comparison.verdict.note,
        against=comparison.reference,
        n=found.n,
        planned=len({run.seed for run in runs}),
        found=found,
        methods=repr(results.methods(pair.arm)),
        about=comparison.about,
    )
    waiting = {run.seed for run in runs if run.status not in ENDED}
    if waiting:
        seeds = f"{cell.planned - len(waiting)} of {cell.planned} seeds"
        return replace(cell, state=UNFINISHED, reason=f"{seeds} have ended in both arms")
    if not found.n:
        lost = next((arm for arm in (pair.arm, pair.other) if not results.finished(arm)), pair.arm)
        why = f"all runs of {lost} failed" if not results.finished(lost) else "no seed finished in both arms"
        return replace(cell, state=FAILED if lost == pair.arm else UNFIT, reason=why)
    if reason := _unfit(results, comparison, pair):
        return replace(cell, state=UNFIT, reason=reason)
    sign = -1 if METRICS[results.metric].lower_is_better else 1
    ours, theirs = (
        tuple(
            sign * compared_value(run.metrics[results.metric], results.metric)
            for run in (one[side] for one in pair.pairs)
        )
        for side in (0, 1)
    )
    return replace(
        cell,
        state=COUNTED,
        matched=None if comparison.matched is None else comparison.matched.found,
        counted=pair.counted(found, as_chance=False) if comparison.missing else None,
        margin=pair.compared_margin(),
        gains=(ours, theirs),
    )


def _unfit(results: Results, comparison: Comparison, pair: ArmPair) -> str:
    """Why a comparison says nothing of the arm's methods, whatever its figure; empty where it does."""
    if comparison.about == BOTH:
        return comparison.verdict.note
    if comparison.found.p is None:
        return comparison.found.trouble or "one seed only; two or more are needed"
    if results.registration.dropped and not results.registration.reanalysed:
        return "seeds were left out after their results were known"
    if results.learner(pair.arm) is None and results.learner(pair.other) is None and not pair.other_learned():
        return f"{pair.other} did not learn, so nothing here compares methods"
    if not math.isfinite(comparison.found.total_variance):
        return "its difference has no finite variance"
    return ""


def _remarks(planned: PlannedStudy, results: Results) -> list[str]:
    """What a reader of the suite has to mind of a study."""
    found = []
    if not results.registration.fixed_before:
        found.append("Its plan was changed after results were known, or it is not on record when it was made")
    number = len(results.plan["seeds"])
    if number != planned.seeds:
        found.append(f"The plan on disk has {number} seeds, the suite file says {planned.seeds}")
    added = {arm for arm, one in results.plan["arms"].items() if one.get("matches") or one.get("copy_of")}
    others = [arm for arm in results.plan["arms"] if arm not in planned.arms and arm not in added]
    others = [arm for arm in others if arm not in (results.plan.get("added") or {})]
    if others:
        found.append(f"The plan on disk has arms that the suite file does not: {', '.join(others)}")
    return found + [str(caution) for caution in results.cautions if caution.grade != "note"]
