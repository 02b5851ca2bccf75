"""What a suite supports: for each metric one verdict per arm over tasks, with every cell that is counted or is not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fairtune.analysis.arms_over_tasks import FAVOURABLE, ArmOverTasks, judge_arms
from fairtune.analysis.scales import scale_of
from fairtune.analysis.suite_cells import FINISHED, ArmCell, PlannedStudy, StudyState, SuiteLedger
from fairtune.analysis.suite_registration import SuiteRegistration, register_list
from fairtune.analysis.task_means import FEWEST_TASKS
from fairtune.analysis.verdicts import NOT_SHOWN
from fairtune.core.numbers import DASH, confidence, plural
from fairtune.core.printable import capital
from fairtune.settings.metrics import METRICS


@dataclass(frozen=True)
class MetricOverTasks:
    """The tasks of a suite that go by one metric; differences of other metrics are never averaged with these.

    Args:
        arms: those that are trained; they are corrected together.
        simple: simple baselines, which are judged apart.
    """

    metric: str
    tasks: tuple[str, ...]
    arms: tuple[ArmOverTasks, ...]
    simple: tuple[ArmOverTasks, ...]

    @property
    def unit(self) -> str:
        """What differences are shown in: percent of the other's for what is compared by its ratio, else points."""
        scale = scale_of(self.metric)
        return "%" if METRICS[self.metric].ratios else scale.difference

    def size(self, value: float | None) -> float | None:
        """A difference of the compared scale as it is shown."""
        if value is None or not math.isfinite(value):
            return None
        return (
            100 * math.expm1(min(value, 50.0)) if METRICS[self.metric].ratios else scale_of(self.metric).factor * value
        )

    def gain(self, value: float) -> float:
        """A gain, the higher the better, as it is shown."""
        if METRICS[self.metric].ratios and METRICS[self.metric].lower_is_better:
            return -100 * math.expm1(-max(value, -50.0))
        return self.size(value) or 0.0

    def text(self, value: float | None) -> str:
        """The same with its sign."""
        size = self.size(value)
        if size is None:
            return DASH
        shown = f"{size:+.{2 if abs(size) < 100 else 0}f}".replace("-", "\u2212")
        return "0.00" if shown in ("+0.00", "\u22120.00") else shown

    @property
    def all_arms(self) -> tuple[ArmOverTasks, ...]:
        return (*self.arms, *self.simple)


@dataclass(frozen=True)
class SuiteVerdict:
    """What a suite supports, in the order in which it should be read.

    Args:
        confidence: the highest that its studies ask for.
        reference: the arm that all others are measured against; each is compared with its control, which has its settings.
        registration: when the list of its studies was fixed.
        remarks: what to mind of the suite as a whole.
        times: what runs took, by study and arm.
    """

    suite: str
    confidence: float
    reference: str
    studies: tuple[StudyState, ...]
    metrics: tuple[MetricOverTasks, ...]
    registration: SuiteRegistration
    remarks: tuple[str, ...] = ()
    times: tuple[dict[str, Any], ...] = ()

    @property
    def words(self) -> dict[str, dict[str, str]]:
        """The verdict of each arm, by metric."""
        return {one.metric: {line.arm: line.verdict.word for line in one.all_arms} for one in self.metrics}

    @property
    def complete(self) -> bool:
        return all(study.state == FINISHED for study in self.studies)

    @property
    def opening(self) -> str:
        """What it supports, in a sentence for each metric."""
        return " ".join(_opening(one) for one in self.metrics)

    @property
    def about(self) -> str:
        """How much of the table there is."""
        done = sum(study.state == FINISHED for study in self.studies)
        many = plural(len(self.studies), "study", "studies")
        tasks = len({study.task for study in self.studies})
        of = plural(tasks, "task")
        return f"{many} of {of}, {done} finished; confidence {confidence(self.confidence)}"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.suite}: {self.about}"
        yield self.opening
        yield self.registration.sentence
        for one in self.metrics:
            for line in one.all_arms:
                yield f"{scale_of(one.metric).title}, {line.arm}: {arm_sentence(one, line)}"
        yield from self.remarks

    def as_json(self) -> dict[str, Any]:
        """The page as data: differences in the unit that is named beside them, cells that are not counted with their reason."""
        return {
            "suite": self.suite,
            "about": self.about,
            "opening": self.opening,
            "confidence": self.confidence,
            "reference": self.reference,
            "complete": self.complete,
            "registration": {
                "recorded": self.registration.recorded,
                "known": self.registration.known,
                "fixed_before": self.registration.fixed_before,
                "sentence": self.registration.sentence,
                "changes": [str(change) for change in self.registration.changes],
                "left_out": [study for _, study in self.registration.left_out],
                "beside": list(self.registration.beside),
            },
            "remarks": list(self.remarks),
            "studies": [asdict(study) for study in self.studies],
            "metrics": [
                {
                    "metric": one.metric,
                    "unit": one.unit,
                    "lower_is_better": METRICS[one.metric].lower_is_better,
                    "tasks": list(one.tasks),
                    "arms": [_arm_json(one, line) for line in one.all_arms],
                }
                for one in self.metrics
            ],
            "times": list(self.times),
        }


def judge_suite(name: str, planned: Sequence[PlannedStudy], runs: Path) -> SuiteVerdict:
    """What the runs folder supports about the arms of a suite."""
    ledger = SuiteLedger(planned, runs)
    level = max(study.confidence for study in planned)
    registration = register_list(runs, name, [asdict(study) for study in planned])
    metrics = tuple(
        _metric(metric, [study for study in planned if study.metric == metric], ledger, level, registration)
        for metric in dict.fromkeys(study.metric for study in planned)
    )
    states = tuple(ledger.state(study) for study in planned)
    remarks = registration.remarks
    remarks += [remark for one in metrics for line in one.all_arms for remark in _arm_remarks(line)]
    mind = tuple(dict.fromkeys(remarks))
    times = tuple(one for study in planned for one in ledger.times(study))
    return SuiteVerdict(name, level, planned[0].reference, states, metrics, registration, mind, times)


def _metric(
    metric: str, planned: Sequence[PlannedStudy], ledger: SuiteLedger, level: float, registration: SuiteRegistration
) -> MetricOverTasks:
    names = list(dict.fromkeys(arm for study in planned for arm in study.arms if arm != study.reference))
    simple = {arm for study in planned for arm, is_simple in study.arms.items() if is_simple}
    cells = {arm: [ledger.cell(study, arm) for study in planned] for arm in names}
    trained = {arm: own for arm, own in cells.items() if arm not in simple}
    learned = {arm: own for arm, own in cells.items() if arm in simple}
    left_out = registration.left_out_of(metric)
    return MetricOverTasks(
        metric,
        tuple(dict.fromkeys(study.task for study in planned)),
        tuple(_as_registered(line, left_out) for line in judge_arms(trained, metric, level)),
        tuple(_as_registered(line, left_out) for line in judge_arms(learned, metric, level, simple=True)),
    )


def _as_registered(line: ArmOverTasks, left_out: Sequence[str]) -> ArmOverTasks:
    """An arm of a suite; nothing is said in its favour once a task was left out whose results were known."""
    if not left_out or line.verdict.word not in FAVOURABLE:
        return line
    note = f"{line.verdict.word} on the tasks that were kept; left out after results were known: {', '.join(left_out)}"
    return replace(line, verdict=replace(line.verdict, word=NOT_SHOWN, note=note))


def _opening(one: MetricOverTasks) -> str:
    title = scale_of(one.metric).title
    begin = f"{capital(title)}, {plural(len(one.tasks), 'task')}"
    if not one.arms:
        return f"{begin}: no arm to compare."
    most = max(line.tasks for line in one.arms)
    if most < FEWEST_TASKS:
        return f"{begin}, {most} of them with results: no verdict over tasks, which takes three or more."
    words: dict[str, list[str]] = {}
    for line in one.arms:
        words.setdefault(line.verdict.word, []).append(line.arm)
    found = "; ".join(f"{word}: {', '.join(arms)}" for word, arms in words.items())
    return f"{begin}, {most} of them with results. {capital(found)}."


def arm_sentence(one: MetricOverTasks, line: ArmOverTasks, word: bool = True) -> str:
    """An arm's verdict over tasks with what it rests on.

    Args:
        word: begin with the verdict itself; else it stands beside the sentence.
    """
    found, unit = line.found, one.unit
    note = capital(line.verdict.note)
    begin = str(line.verdict) if word else note
    if not line.tasks:
        return f"{begin}."
    lower = ", lower is better" if METRICS[one.metric].lower_is_better else ""
    over = f"on average over {line.tasks} tasks" if line.tasks > 1 else "on the only task that is counted"
    mean = f"{one.text(found.difference)} {unit} {over}{lower}"
    ends = (
        f", {confidence(found.confidence)} interval {one.text(found.low)} to {one.text(found.high)}"
        if found.low is not None
        else ""
    )
    counts = f"shown better on {line.better}, worse on {line.worse}, neither on {line.open}"
    worst = ""
    if line.worst is not None and line.worst.found is not None:
        own = line.worst.found
        worst = f" Worst: {line.worst.label}, {one.text(own.difference)} [{one.text(own.low)} to {one.text(own.high)}]."
    return f"{f'{begin}. ' if begin else ''}{mean}{ends}; {counts}.{worst}"


def _arm_remarks(line: ArmOverTasks) -> Iterator[str]:
    """Arms that do not mean the same in all studies."""
    kinds: dict[str, str] = {}
    for cell in line.cells:
        if cell.methods:
            kinds.setdefault(cell.methods, cell.study)
    if len(kinds) > 1:
        where = " and ".join(kinds.values())
        yield f"{line.arm} has other methods, or other settings of them, in {where}: its mean is of different things."
    about = dict.fromkeys(cell.about for cell in line.cells if cell.about)
    if len(about) > 1:
        parts = " in one study, in ".join(about)
        yield f"{line.arm} differs from its control in {parts} in another: its mean is of different things."


def _arm_json(one: MetricOverTasks, line: ArmOverTasks) -> dict[str, Any]:
    found, profile = line.found, line.profile
    return {
        "arm": line.arm,
        "simple_baseline": line.simple,
        "verdict": line.verdict.word,
        "note": line.verdict.note,
        "p": line.verdict.p,
        "tasks": line.tasks,
        "planned_tasks": line.planned,
        "difference": one.size(found.difference),
        "low": one.size(found.low),
        "high": one.size(found.high),
        "family_low": one.size(line.verdict.family[0]),
        "family_high": one.size(line.verdict.family[1]),
        "margin": one.size(line.margin),
        "between_variance": line.between if line.tasks > 1 else None,
        "within_variance": line.within if line.tasks else None,
        "better": line.better,
        "worse": line.worse,
        "open": line.open,
        "missing": list(line.missing),
        "partial": list(line.partial),
        "worst": None if line.worst is None else _cell_json(one, line.worst),
        "improvement": None if line.improvement is None else asdict(line.improvement),
        "interquartile_mean": None
        if profile is None
        else {"mean": one.gain(profile.iqm), "low": one.gain(profile.iqm_low), "high": one.gain(profile.iqm_high)},
        "profile": None
        if profile is None
        else {
            "gain": [one.gain(value) for value in profile.at],
            "share": list(profile.share),
            "low": list(profile.share_low),
            "high": list(profile.share_high),
        },
        "groups": [
            {
                **asdict(group),
                "difference": one.size(group.difference),
                "low": one.size(group.low),
                "high": one.size(group.high),
            }
            for group in line.groups
        ],
        "cells": [_cell_json(one, cell) for cell in line.cells],
    }


def _cell_json(one: MetricOverTasks, cell: ArmCell) -> dict[str, Any]:
    found = cell.found
    return {
        "study": cell.study,
        "task": cell.task,
        "model": cell.model,
        "group": cell.group,
        "state": cell.state,
        "reason": cell.reason,
        "verdict": cell.word or None,
        "against": cell.against,
        "n": cell.n,
        "planned": cell.planned,
        "difference": None if found is None else one.size(found.difference),
        "low": None if found is None else one.size(found.low),
        "high": None if found is None else one.size(found.high),
        "matched_difference": None if cell.matched is None else one.size(cell.matched.difference),
    }
