"""A comparison as one flat record with names that stay: what report.json and comparisons.csv have, and other programs read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairtune.analysis.arm_pairs import DESCRIPTIVE
from fairtune.analysis.scales import scale_of
from fairtune.report.content import ReportContent, Versus

COMPARISON_SCHEMA = "fairtune.comparison/1"
"""The number grows when a field is taken away or means something else; new ones may be added."""


@dataclass(frozen=True)
class ComparisonRecord:
    """One arm against another, by one metric.

    Args:
        schema: `fairtune.comparison/1`.
        study: the study's name.
        plan: the hash of its plan.
        metric: what is compared, by its name in study files; figures are in its own unit, shares from 0 to 1.
        lower_is_better: whether less of the metric is better; then a difference above zero is a loss.
        arm: the arm that is judged.
        against: the arm that it is compared with: its control, else the reference.
        role: `primary`, `secondary` (left out: an arm of several methods against the one that lacks one of them),
            `descriptive` (the plain difference to the reference, without a verdict), `A/A` (a copy) or `simple baseline`.
        about: in what the two differ: `methods`, `settings`, `methods and settings`, `nothing` or `learning`.
        settings: names of settings, other than methods, in which they differ.
        n: seeds that both have.
        mean: of the arm over those seeds.
        against_mean: of the other arm over the same seeds.
        difference: `mean` less `against_mean`; null where it cannot be told.
        low: the lower end of the interval of this comparison alone.
        high: the upper end.
        family_low: the lower end of the interval that the whole family shares.
        family_high: the upper end.
        confidence: of both intervals, from 0 to 1.
        p: of no difference, of this comparison alone.
        p_holm: the same, corrected by Holm over the family, and for looks.
        margin: a loss that would not matter, in the metric's unit; null without one.
        verdict: `better`, `worse`, `inferior`, `not inferior`, `equivalent`, `not separable`, `not shown` or `no verdict`;
            empty for a description.
        note: what is missing for a verdict, or what to mind.
        missing: runs of either arm that ended without a score.
        time_ratio: of step times, from the timing experiment; null where the two were not timed.
        time_low: the lower end of its interval.
        time_high: the upper end.
    """

    schema: str
    study: str
    plan: str
    metric: str
    lower_is_better: bool
    arm: str
    against: str
    role: str
    about: str
    settings: tuple[str, ...]
    n: int
    mean: float | None
    against_mean: float | None
    difference: float | None
    low: float | None
    high: float | None
    family_low: float | None
    family_high: float | None
    confidence: float
    p: float | None
    p_holm: float | None
    margin: float | None
    verdict: str
    note: str
    missing: tuple[str, ...]
    time_ratio: float | None
    time_low: float | None
    time_high: float | None


def comparison_records(content: ReportContent) -> list[ComparisonRecord]:
    """Every comparison of a report: primary ones first, then left out, descriptive, and those by further metrics."""
    return [_record(content, metric, versus) for metric, versus in _comparisons(content)]


def _comparisons(content: ReportContent) -> Iterator[tuple[str, Versus]]:
    metric = content.header.metric
    yield from ((metric, row.versus) for row in content.rows if row.versus is not None)
    yield from ((metric, one.versus) for one in content.sections["comparisons"].left_out)
    yield from ((metric, row.raw) for row in content.rows if row.raw is not None)
    further = content.sections["further_metrics"]
    for column in further.columns if further is not None else ():
        yield from ((column.metric, cell.versus) for cell in column.arms.values() if cell.versus is not None)


def _record(content: ReportContent, metric: str, versus: Versus) -> ComparisonRecord:
    described = versus.role == DESCRIPTIVE
    header, timed = content.header, versus.timed.found if versus.timed is not None else None
    return ComparisonRecord(
        schema=COMPARISON_SCHEMA,
        study=header.study,
        plan=header.plan,
        metric=metric,
        lower_is_better=scale_of(metric).lower_is_better,
        arm=versus.arm,
        against=versus.reference,
        role=versus.role,
        about=versus.about,
        settings=tuple(confound.setting for confound in versus.confounds),
        n=versus.n,
        mean=versus.mean,
        against_mean=versus.base,
        difference=versus.difference,
        low=versus.low,
        high=versus.high,
        family_low=None if described else versus.family_low,
        family_high=None if described else versus.family_high,
        confidence=header.confidence,
        p=None if described else versus.alone_p,
        p_holm=None if described else versus.p,
        margin=versus.margin,
        verdict="" if described else versus.word,
        note="" if described else versus.note,
        missing=versus.missing,
        time_ratio=timed.ratio if timed is not None else None,
        time_low=timed.low if timed is not None else None,
        time_high=timed.high if timed is not None else None,
    )
