"""The forest plot as places on strips: primary comparisons, with the interval of each alone and among all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairtune.analysis.arm_pairs import BOTH, COPY, SETTINGS, SIMPLE
from fairtune.analysis.scales import Scale, relative, scale_of
from fairtune.core.numbers import low_to_high
from fairtune.report.content import ArmRow, Header, Versus
from fairtune.report.figures.strips import StripAxis, difference_axis
from fairtune.settings.learners import MAJORITY

Ends = tuple[float, float]


@dataclass(frozen=True)
class ForestRow:
    """One comparison; places are percent of a strip's width.

    Args:
        at: the difference; None where there is nothing to draw.
        alone, family: the ends of both intervals.
        raw: the plain difference to the reference, and that in words.
        mark: `square` compares settings, `hollow` methods and settings at once, `round` methods.
        edge: the difference lies beyond an end of the axis: -1 at the left, 1 at the right.
        estimate, interval: in figures.
        spoken: all of it, for a screen reader and under the pointer.
    """

    versus: Versus
    at: float | None
    alone: Ends | None
    family: Ends | None
    raw: tuple[float, str] | None
    mark: str
    edge: int
    estimate: str
    interval: str
    spoken: str


@dataclass(frozen=True)
class ForestPlot:
    """Every comparison on one axis.

    Args:
        margin: the band of losses that do not matter, in percent of the width; None without a margin.
        simple: simple baselines, which stand apart.
    """

    axis: StripAxis
    margin: Ends | None
    compared: tuple[ForestRow, ...]
    simple: tuple[ForestRow, ...]


def make_forest(header: Header, rows: Sequence[ArmRow]) -> ForestPlot | None:
    """The plot; None where no two arms are compared yet."""
    scale = scale_of(header.metric)
    compared = [row for row in rows if row.versus is not None]
    drawn = [row for row in compared if _is_drawn(row.versus)]
    if not drawn:
        return None
    compared.sort(
        key=lambda row: row.versus is not None and row.versus.role != COPY
    )  # what must be nothing comes first
    near = [row.versus for row in drawn if row.versus is not None and row.learner != MAJORITY]
    near = near or [row.versus for row in drawn if row.versus is not None]
    ends = [drawn_ends(scale, versus) for versus in near]
    margins = [unit_of(scale, versus) * versus.margin for versus in near if versus.margin is not None]
    margin = (max(margins) if scale.lower_is_better else -max(margins)) if margins else 0.0
    raws = [unit_of(scale, row.raw) * row.raw.difference for row in drawn if row.raw and row.raw.difference is not None]
    sizes = [max(abs(low), abs(high)) for low, high in ends] if scale.plain else []
    shown = [*(end for both in ends for end in both), margin, *raws]
    axis = difference_axis(shown, sizes, least=max(margins, default=1.0))
    made = [_forest_row(header, scale, axis, row) for row in compared]
    return ForestPlot(
        axis,
        (min(axis.at(0), axis.at(margin)), max(axis.at(0), axis.at(margin))) if margins else None,
        tuple(row for row in made if row.versus.role != SIMPLE),
        tuple(row for row in made if row.versus.role == SIMPLE),
    )


def unit_of(scale: Scale, versus: Versus) -> float:
    """From the metric to what is drawn: points, or of a plain number percent of the other arm's."""
    return 100 / versus.base if scale.plain and versus.base else scale.factor


def drawn_ends(scale: Scale, versus: Versus) -> Ends:
    """The ends of the wider interval."""
    by = unit_of(scale, versus)
    low = versus.low if versus.family_low is None else versus.family_low
    high = versus.high if versus.family_high is None else versus.family_high
    return by * (low or 0.0), by * (high or 0.0)


def _is_drawn(versus: Versus | None) -> bool:
    return versus is not None and versus.difference is not None and versus.low is not None and versus.high is not None


def _forest_row(header: Header, scale: Scale, axis: StripAxis, row: ArmRow) -> ForestRow:
    versus = row.versus
    assert versus is not None, "the arm is compared"
    mark = "square" if versus.about == SETTINGS else "hollow" if versus.about == BOTH else "round"
    if not _is_drawn(versus):
        spoken = f"{versus.arm} against {versus.reference}: {versus.word}. {versus.note}"
        return ForestRow(versus, None, None, None, None, mark, 0, "", "", spoken)
    by = unit_of(scale, versus)
    value = by * (versus.difference or 0.0)
    family = header.simple_family if versus.role == SIMPLE else header.family
    edge = 0 if axis.holds(value) else int(math.copysign(1, value))
    raw = None
    if row.raw is not None and row.raw.difference is not None:
        raw = (axis.at(unit_of(scale, row.raw) * row.raw.difference), _shown(scale, row.raw, row.raw.difference))
    return ForestRow(
        versus=versus,
        at=axis.at(value),
        alone=_places(axis, by, versus.low, versus.high),
        family=_places(axis, by, versus.family_low, versus.family_high) if family > 1 else None,
        raw=raw,
        mark=mark,
        edge=edge,
        estimate=_shown(scale, versus, versus.difference),
        interval=low_to_high(versus.low, versus.high, lambda end: _shown(scale, versus, end)),
        spoken=f"{versus.arm}: {versus.text}",
    )


def _places(axis: StripAxis, by: float, low: float | None, high: float | None) -> Ends | None:
    return None if low is None or high is None else (axis.at(by * low), axis.at(by * high))


def _shown(scale: Scale, versus: Versus, value: float | None) -> str:
    return relative(value, versus.base) if scale.plain else scale.signed(value)
