"""Scores as places on strips: every seed of every arm, its mean and interval, beside the reference's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fairtune.analysis.scales import scale_of
from fairtune.core.numbers import low_to_high
from fairtune.report.content import ArmRow, Header
from fairtune.report.figures.palette import arm_style
from fairtune.report.figures.strips import StripAxis, value_axis
from fairtune.settings.learners import MAJORITY
from fairtune.settings.metrics import METRICS

Ends = tuple[float, float]


@dataclass(frozen=True)
class ScoreRow:
    """One arm; places are percent of a strip's width.

    Args:
        seeds: of each run where it is, and the seed with its score in words.
        edge: the mean lies beyond an end of the axis: -1 at the left, 1 at the right.
        shown: the mean in figures, `interval` its interval.
    """

    arm: str
    n: int
    colour: str
    at: float | None
    interval: Ends | None
    seeds: tuple[tuple[float, str], ...]
    edge: int
    shown: str
    interval_shown: str
    learner: bool


@dataclass(frozen=True)
class ScorePlot:
    """Every arm on one axis.

    Args:
        reference: where the reference's mean is; None if there is none.
        margin: the band of losses against it that do not matter.
    """

    axis: StripAxis
    reference: float | None
    margin: Ends | None
    rows: tuple[ScoreRow, ...]


def make_scores(header: Header, rows: Sequence[ArmRow]) -> ScorePlot | None:
    """The plot; None where no run is finished."""
    scale, facts = scale_of(header.metric), METRICS.get(header.metric)
    by = scale.factor
    near = [row for row in rows if row.learner != MAJORITY] or list(rows)
    values = [by * value for row in near for value in _values(header, row)]
    if not any(math.isfinite(value) for value in values):
        return None
    low, high = facts.bounds if facts is not None else (-math.inf, math.inf)
    axis = value_axis(values, (by * low, by * high), may_bend=scale.plain)
    first = next((row for row in rows if row.versus is None), None)
    mean = by * first.summaries[header.metric].mean if first is not None else math.nan
    at = axis.at(mean) if math.isfinite(mean) else None
    band = None
    if at is not None and header.margin is not None:
        other = axis.at(mean + (1 if scale.lower_is_better else -1) * by * header.margin)
        band = (min(at, other), max(at, other))
    return ScorePlot(axis, at, band, tuple(_score_row(header, axis, place, row) for place, row in enumerate(rows)))


def _values(header: Header, row: ArmRow) -> list[float]:
    summary = row.summaries[header.metric]
    ends = [end for end in (summary.low, summary.high) if end is not None]
    return [*row.scores.values(), *ends]


def _score_row(header: Header, axis: StripAxis, place: int, row: ArmRow) -> ScoreRow:
    scale, summary = scale_of(header.metric), row.summaries[header.metric]
    by, colour = scale.factor, arm_style(place)["color"]
    known = summary.n > 0 and math.isfinite(summary.mean)
    mean, both = by * summary.mean, summary.low is not None and summary.high is not None
    seeds = (
        (axis.at(by * score), f"seed {seed}: {scale.value(score)}")
        for seed, score in row.scores.items()
        if math.isfinite(score)
    )
    return ScoreRow(
        arm=row.arm,
        n=summary.n,
        colour=colour,
        at=axis.at(mean) if known else None,
        interval=(axis.at(by * (summary.low or 0.0)), axis.at(by * (summary.high or 0.0))) if both else None,
        seeds=tuple(seeds),
        edge=0 if not known or axis.holds(mean) else 1 if axis.at(mean) > 50 else -1,
        shown=scale.value(summary.mean) if known else "not a finite number" if summary.n else "no run is finished",
        interval_shown=low_to_high(summary.low, summary.high, scale.value) if both else "",
        learner=row.learner is not None and row.versus is not None,
    )
