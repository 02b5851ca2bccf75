"""A suite's forest plots as places on strips: an arm's difference on each task, the mean over tasks below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtune.analysis.arms_over_tasks import ArmOverTasks
from fairtune.analysis.suite_cells import ArmCell
from fairtune.analysis.suite_verdict import MetricOverTasks
from fairtune.core.numbers import confidence, plural
from fairtune.report.figures.strips import StripAxis, difference_axis

Ends = tuple[float, float]


@dataclass(frozen=True)
class SuiteRow:
    """One study, or a mean over tasks; places are percent of a strip's width.

    Args:
        at: the difference; None where there is nothing to draw.
        alone, family: the ends of its own interval, and of that which all arms share.
        estimate, interval: in figures.
        word: the verdict, or why the study is not counted.
        counted: whether it is part of the mean.
        spoken: all of it, for a screen reader and under the pointer.
    """

    label: str
    below: str
    at: float | None
    alone: Ends | None
    family: Ends | None
    estimate: str
    interval: str
    word: str
    counted: bool
    spoken: str


@dataclass(frozen=True)
class SuiteForest:
    """One arm on all its tasks."""

    arm: str
    axis: StripAxis
    rows: tuple[SuiteRow, ...]
    groups: tuple[SuiteRow, ...]
    mean: SuiteRow
    margin: Ends | None


def make_forests(one: MetricOverTasks, lines: Sequence[ArmOverTasks]) -> list[SuiteForest]:
    """A plot for each arm, all on one axis so that they can be compared; none for an arm without any result."""
    drawn = [
        line for line in lines if any(cell.found is not None and cell.found.low is not None for cell in line.cells)
    ]
    ends = [end for line in drawn for end in _ends(one, line)]
    sizes = [max(abs(low), abs(high)) for low, high in ends]
    margins = [one.size(line.margin) or 0.0 for line in drawn if line.margin is not None]
    axis = difference_axis([end for both in ends for end in both], sizes, least=max(margins, default=1.0))
    return [_forest(one, line, axis) for line in drawn]


def _ends(one: MetricOverTasks, line: ArmOverTasks) -> list[Ends]:
    pairs = [(cell.found.low, cell.found.high) for cell in line.cells if cell.found is not None]
    pairs += [(line.found.low, line.found.high), line.verdict.family]
    return [
        (low, high)
        for low, high in ((one.size(a), one.size(b)) for a, b in pairs)
        if low is not None and high is not None
    ]


def _forest(one: MetricOverTasks, line: ArmOverTasks, axis: StripAxis) -> SuiteForest:
    groups = tuple(
        _row(
            one,
            axis,
            group.group,
            plural(group.tasks, "task"),
            (group.difference, group.low, group.high),
            "",
            spoken="Mean of the group",
        )
        for group in line.groups
    )
    found = line.found
    mean = _row(
        one, axis, "mean over tasks", plural(line.tasks, 'task'), (found.difference, found.low, found.high), line.verdict.word,
        line.verdict.family, f"Mean over tasks, {confidence(found.confidence)} interval",
    )  # fmt: skip
    margin = None
    if line.margin is not None and (size := one.size(line.margin)) is not None:
        edge = axis.at(size if _lower(one) else -size)
        margin = (min(axis.at(0), edge), max(axis.at(0), edge))
    rows = tuple(_cell_row(one, axis, cell) for cell in line.cells)
    return SuiteForest(line.arm, axis, rows, groups if len(groups) > 1 else (), mean, margin)


def _lower(one: MetricOverTasks) -> bool:
    return (one.size(1.0) or 0.0) > one.gain(1.0)


def _cell_row(one: MetricOverTasks, axis: StripAxis, cell: ArmCell) -> SuiteRow:
    below = f"{cell.model}, n = {cell.n}" if cell.n else cell.model
    if cell.found is None:
        return SuiteRow(
            cell.task, below, None, None, None, "", "", cell.state, False, f"{cell.label}: {cell.reason or cell.state}"
        )
    values = (cell.found.difference, cell.found.low, cell.found.high)
    word = cell.word if cell.is_counted else cell.state
    row = _row(one, axis, cell.task, below, values, word, spoken=f"{cell.label} against {cell.against}")
    spoken = row.spoken if cell.is_counted else f"{row.spoken} Not counted: {cell.reason}."
    return SuiteRow(**{**vars(row), "counted": cell.is_counted, "spoken": spoken})


def _row(
    one: MetricOverTasks,
    axis: StripAxis,
    label: str,
    below: str,
    values: tuple[float, float | None, float | None],
    word: str,
    family: tuple[float | None, float | None] = (None, None),
    spoken: str = "",
) -> SuiteRow:
    difference, low, high = (one.size(value) for value in values)
    interval = f"{one.text(values[1])} to {one.text(values[2])}" if low is not None else ""
    estimate = one.text(values[0]) if difference is not None else ""
    told = f"{spoken}: {estimate} {one.unit}{f' [{interval}]' if interval else ''}{f', {word}' if word else ''}."
    return SuiteRow(
        label,
        below,
        None if difference is None else axis.at(difference),
        None if low is None or high is None else (axis.at(low), axis.at(high)),
        _family(one, axis, family),
        estimate,
        interval,
        word,
        True,
        told,
    )


def _family(one: MetricOverTasks, axis: StripAxis, ends: tuple[float | None, float | None]) -> Ends | None:
    low, high = (one.size(end) for end in ends)
    return None if low is None or high is None else (axis.at(low), axis.at(high))
