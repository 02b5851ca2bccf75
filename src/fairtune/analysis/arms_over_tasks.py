"""One verdict per arm over tasks: the arms of a suite by one metric, judged together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairtune.analysis.comparisons import SURVIVES
from fairtune.analysis.run_profiles import RunProfile, profile_runs
from fairtune.analysis.statistics import PairedDifference, no_difference
from fairtune.analysis.suite_cells import FAILED, ArmCell
from fairtune.analysis.task_means import (
    FEWEST_TASKS,
    Improvement,
    TaskDifference,
    mean_improvement,
    mean_over_tasks,
    mean_variance,
    task_difference,
    tasks_needed,
)
from fairtune.analysis.verdicts import (
    BETTER,
    EQUIVALENT,
    INFERIOR,
    NONE,
    NOT_INFERIOR,
    NOT_SEPARABLE,
    NOT_SHOWN,
    WORSE,
    Family,
    Verdict,
    judge_family,
)
from fairtune.core.numbers import plural
from fairtune.settings.metrics import METRICS

MIXED = "mixed"
MOST_MISSING = 1 / 3
"""The share of tasks that may lack an arm; with more of them missing, what is there may be a choice of what looked well."""
LOST = (WORSE, INFERIOR)
FAVOURABLE = (BETTER, NOT_INFERIOR, EQUIVALENT)


@dataclass(frozen=True)
class GroupMean:
    """The mean over the tasks of one group, to look at: it has no verdict. No interval with fewer than three tasks."""

    group: str
    tasks: int
    difference: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ArmOverTasks:
    """An arm over the tasks of one metric.

    Args:
        found: the mean difference over tasks, on the scale on which the metric is compared.
        planned: tasks of the suite by this metric; `found.n` of them are counted.
        missing: those that are not, each with the reason.
        partial: tasks that are counted without some of their models, each with the reason.
        better, worse, open: tasks by what the studies themselves show on them; one loss makes a task one that is lost.
        worst: the cell with the smallest gain.
        between, within: the variance of the mean as the scatter of tasks shows it, and as seeds and examples alone give it.
        improvement: how often a run of the arm is better than one of the arm compared with.
        profile: from five tasks on.
    """

    arm: str
    simple: bool
    verdict: Verdict
    found: PairedDifference
    planned: int
    cells: tuple[ArmCell, ...]
    missing: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    better: int = 0
    worse: int = 0
    open: int = 0
    worst: ArmCell | None = None
    margin: float | None = None
    between: float = 0.0
    within: float = 0.0
    improvement: Improvement | None = None
    profile: RunProfile | None = None
    groups: tuple[GroupMean, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.missing and not self.partial

    @property
    def tasks(self) -> int:
        return self.found.n


def judge_arms(
    arms: Mapping[str, Sequence[ArmCell]], metric: str, confidence: float, simple: bool = False
) -> list[ArmOverTasks]:
    """The verdict of each arm over tasks, all of these corrected together.

    Args:
        arms: the cells of each, those included that cannot be counted.
        simple: they are simple baselines, a family of their own.
    """
    lines = [_line(arm, cells, metric, confidence, simple) for arm, cells in arms.items()]
    judged = [line for line in lines if line.found.p is not None and not line.found.trouble]
    family = Family(confidence, metric, METRICS[metric].lower_is_better, others=len(lines) - len(judged))
    margins = [line.margin for line in judged]
    verdicts = judge_family([line.found for line in judged], margins, family)
    for which in ("matched", "counted"):
        if not any(_has(line, which) for line in judged):
            continue
        others = judge_family([_other_mean(line, metric, which) for line in judged], margins, family)
        verdicts = [
            _hold(line, verdict, other, which) for line, verdict, other in zip(judged, verdicts, others, strict=True)
        ]
    final = {
        line.arm: _finish(line, _in_words(line, verdict, family))
        for line, verdict in zip(judged, verdicts, strict=True)
    }
    return [replace(line, verdict=final.get(line.arm, line.verdict)) for line in lines]


def by_task(cells: Sequence[ArmCell]) -> dict[str, list[ArmCell]]:
    """Cells of each task, in their order."""
    found: dict[str, list[ArmCell]] = {}
    for cell in cells:
        found.setdefault(cell.task, []).append(cell)
    return found


def _line(arm: str, cells: Sequence[ArmCell], metric: str, confidence: float, simple: bool) -> ArmOverTasks:
    """Everything about an arm but its verdict."""
    tasks = by_task(cells)
    counted = {task: [cell for cell in own if cell.is_counted] for task, own in tasks.items()}
    counted = {task: own for task, own in counted.items() if own}
    differences = _differences(counted, "found")
    limits = difference_limits(metric)
    found = mean_over_tasks(differences, confidence, limits, FEWEST_TASKS)
    missing = tuple(f"{task} ({_reason(own[0])})" for task, own in tasks.items() if task not in counted)
    partial = tuple(
        f"{task} with {cell.model} ({_reason(cell)})" for task in counted for cell in tasks[task] if not cell.is_counted
    )
    trouble = ""
    if len(counted) < FEWEST_TASKS:
        trouble = f"{len(counted)} of {plural(len(tasks), 'task')} counted; three or more are needed"
    elif len(missing) > MOST_MISSING * len(tasks):
        trouble = f"withheld: {len(missing)} of {plural(len(tasks), 'task')} are missing, more than a third"
    kept = [cell for own in counted.values() for cell in own]
    known = [cell.margin for cell in kept if cell.margin is not None]
    outcomes = [_outcome(own) for own in counted.values()]
    between, within = mean_variance(differences) if differences else (0.0, 0.0)
    gains = [[cell.gains for cell in own] for own in counted.values()]
    sign = -1 if METRICS[metric].lower_is_better else 1
    return ArmOverTasks(
        arm,
        simple,
        Verdict(NONE, None, trouble),
        replace(found, trouble=trouble) if trouble else found,
        len(tasks),
        tuple(cells),
        missing,
        partial,
        outcomes.count(BETTER),
        outcomes.count(WORSE),
        outcomes.count(NOT_SEPARABLE),
        min(kept, key=lambda cell: sign * _value(cell), default=None),
        _mean_margin(counted) if len(known) == len(kept) and kept else None,
        between,
        within,
        mean_improvement(gains, confidence),
        profile_runs(gains, confidence),
        tuple(_groups(kept, confidence, limits)),
    )


def _mean_margin(counted: Mapping[str, Sequence[ArmCell]]) -> float:
    """The mean over tasks of the losses that would not matter."""
    return float(np.mean([np.mean([cell.margin or 0.0 for cell in own]) for own in counted.values()]))


def difference_limits(metric: str) -> tuple[float, float]:
    """What no difference of the metric, as it is compared, can be beyond."""
    low, high = METRICS[metric].bounds
    span = math.inf if METRICS[metric].ratios else high - low
    return -span, span


def _differences(counted: Mapping[str, Sequence[ArmCell]], which: str) -> list[TaskDifference]:
    chosen = {task: [getattr(cell, which) or cell.found for cell in own] for task, own in counted.items()}
    return [task_difference(task, [one for one in own if one is not None]) for task, own in chosen.items()]


def _other_mean(line: ArmOverTasks, metric: str, which: str) -> PairedDifference:
    """The mean with another difference of some cells: beside matched controls, or with missing runs counted."""
    counted = by_task([cell for cell in line.cells if cell.is_counted])
    found = mean_over_tasks(
        _differences(counted, which), line.found.confidence, difference_limits(metric), FEWEST_TASKS
    )
    usable = found.p is not None and math.isfinite(found.p)
    return found if usable else no_difference(found.n, found.confidence, trouble="cannot be counted")


def _groups(cells: Sequence[ArmCell], confidence: float, limits: tuple[float, float]) -> list[GroupMean]:
    names = list(dict.fromkeys(cell.group for cell in cells))
    found = []
    for name in names:
        own = by_task([cell for cell in cells if cell.group == name])
        mean = mean_over_tasks(_differences(own, "found"), confidence, limits, FEWEST_TASKS)
        found.append(GroupMean(name, mean.n, mean.difference, mean.low, mean.high))
    return found


def _value(cell: ArmCell) -> float:
    return math.nan if cell.found is None else cell.found.difference


def _reason(cell: ArmCell) -> str:
    """Why a cell is not counted, in a word or two."""
    return cell.state


def _outcome(cells: Sequence[ArmCell]) -> str:
    """A task by what its studies show: lost if any of them is, won if one is and none is lost."""
    words = [cell.word for cell in cells]
    return WORSE if any(word in LOST for word in words) else BETTER if BETTER in words else NOT_SEPARABLE


def _has(line: ArmOverTasks, which: str) -> bool:
    """Whether some cell that is counted has that other difference."""
    return any(getattr(cell, which) is not None for cell in line.cells if cell.is_counted)


def _hold(line: ArmOverTasks, verdict: Verdict, other: Verdict, which: str) -> Verdict:
    """A verdict as far as it holds beside matched controls, or with missing runs counted."""
    if not _has(line, which) or not verdict.settled or other.word in SURVIVES[verdict.word]:
        return verdict
    if which == "matched":
        note = (
            f"{verdict.word} beside controls as they were tuned, but {other.word} beside those with the settings that this arm "
            "chose: it may be the settings"
        )
    else:
        note = f"{verdict.word} if runs that failed are left out, {other.word} if each counts as worse than all others of its arm"
    return replace(verdict, word=NOT_SHOWN, note=note)


def _in_words(line: ArmOverTasks, verdict: Verdict, family: Family) -> Verdict:
    """An open verdict with what is missing, counted in tasks."""
    if verdict.word != NOT_SEPARABLE:
        return verdict
    leaning = verdict.note.partition("; ")[0] if verdict.note.startswith("leans") else ""
    alone = line.found.p or 1.0
    risk = family.risk / max(1.0, (verdict.p or 1.0) / alone)
    if line.within >= line.between:
        advice = "seeds and examples within the tasks hide it: more seeds or test examples in each study"
    else:
        needed = tasks_needed(line.found, risk)
        advice = (
            f"tasks differ; some {needed} tasks as scattered as these would show such a mean"
            if needed
            else "so small a mean would not show with 100 tasks that differ as these do"
        )
    return replace(verdict, note="; ".join(filter(None, (leaning, advice))), needed=None)


def _finish(line: ArmOverTasks, verdict: Verdict) -> Verdict:
    """The verdict beside what single tasks show, and with what it lacks."""
    counted = [cell for cell in line.cells if cell.is_counted]
    lost = [cell.label for cell in counted if cell.word in LOST]
    beyond = [cell.label for cell in counted if cell.word == INFERIOR]
    won = [cell.label for cell in counted if cell.word == BETTER]
    failed = [cell.label for cell in line.cells if cell.state == FAILED]
    if verdict.word == NOT_SEPARABLE and (everywhere := _everywhere(line)):
        note = f"shown on each of the {line.tasks} tasks by itself; their mean, as of tasks like these, is not settled"
        verdict = replace(verdict, word=everywhere, note=note)
    word = verdict.word
    against = lost if word == BETTER else beyond if word in FAVOURABLE else won if word in LOST else []
    if failed and word in FAVOURABLE:
        verdict = replace(
            verdict, word=NOT_SHOWN, note=f"{word} on the other tasks, but all its runs failed on {_listed(failed)}"
        )
    elif against:
        shown = "better" if word in LOST else "worse"
        verdict = replace(verdict, word=MIXED, note=f"{word} on average, but shown to be {shown} on {_listed(against)}")
    elif word == NOT_SEPARABLE and won and lost:
        note = f"shown to be better on {_listed(won)} and worse on {_listed(lost)}: it depends on the task"
        verdict = replace(verdict, word=MIXED, note=note)
    holes = []
    if line.missing:
        holes.append(f"over {line.tasks} of {line.planned} tasks, without {_listed(line.missing)}")
    if line.partial:
        holes.append(f"incomplete on {_listed(line.partial)}")
    return replace(verdict, note="; ".join(filter(None, (verdict.note, *holes))))


def _everywhere(line: ArmOverTasks) -> str | None:
    """What every study that is counted shows by itself, in the same direction; None where they do not.

    Each is shown at the study's own level, so that all of them together are no less sure than one (an intersection-union test). To
    be better takes all studies: one that is missing may be the one that is lost.
    """
    words = {cell.word for cell in line.cells if cell.is_counted}
    if words == {BETTER} and line.complete:
        return BETTER
    if words <= set(LOST):
        return INFERIOR if words == {INFERIOR} else WORSE
    return None


def _listed(names: Sequence[str], most: int = 4) -> str:
    """Names, the first of many."""
    if len(names) <= most:
        return "; ".join(names)
    return f"{'; '.join(names[:most])} and {len(names) - most} more"
