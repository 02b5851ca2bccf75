"""Further metrics: what the same comparisons show by the metrics that a study names beside its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fairtune.analysis.results import Results
from fairtune.analysis.scales import relative, scale_of
from fairtune.analysis.statistics import Summary
from fairtune.analysis.study_verdict import family_size, further_metrics, further_note
from fairtune.core.markdown import heading, plain, table
from fairtune.core.numbers import DASH, low_to_high
from fairtune.report.content import Evidence, ReportContent, Versus
from fairtune.report.evidence import shared_seeds, versus_of
from fairtune.report.section import ReportSection

TITLE = "Further metrics"


@dataclass(frozen=True)
class MetricCell:
    """One arm by one metric.

    Args:
        versus: its primary comparison by this metric; None for the reference.
    """

    summary: Summary
    versus: Versus | None


@dataclass(frozen=True)
class MetricColumn:
    """One metric.

    Args:
        late: it was named after results were known.
        family: comparisons that are corrected together, by this metric alone.
        arms: in the study's order.
    """

    metric: str
    late: bool
    family: int
    arms: dict[str, MetricCell]


@dataclass(frozen=True)
class FurtherMetrics:
    """All of them, and how to read them."""

    columns: tuple[MetricColumn, ...]
    note: str


def gather(evidence: Evidence) -> FurtherMetrics | None:
    results = evidence.results
    columns = tuple(_column(results.by(metric)) for metric in further_metrics(results))
    if not columns:
        return None
    return FurtherMetrics(columns, further_note(results.verdict().further, evidence.header.metric_title))


def _column(results: Results) -> MetricColumn:
    """A metric's column, from the results as that metric shows them."""
    cells = {}
    for arm in results.arms:
        found = results.comparison(arm)
        summary = results.summary(arm, seeds=shared_seeds(results, found))
        cells[arm] = MetricCell(summary, versus_of(results, found) if found else None)
    return MetricColumn(results.metric, results.metric in results.registration.late, family_size(results), cells)


def heading_of(column: MetricColumn) -> str:
    scale = scale_of(column.metric)
    return f"{scale.heading}, lower is better" if scale.lower_is_better else scale.heading


def mean_text(column: MetricColumn, cell: MetricCell) -> str:
    """The mean with its interval."""
    scale, own = scale_of(column.metric), cell.summary
    if not own.n:
        return DASH
    interval = "" if own.low is None else f" ({low_to_high(own.low, own.high, scale.value)})"
    return scale.value(own.mean) + interval


def difference_text(column: MetricColumn, versus: Versus) -> str:
    """The difference with its interval; of a plain number, as a share of the other arm's."""
    scale, base = scale_of(column.metric), versus.base
    if versus.low is None:
        return DASH
    if scale.plain:
        interval = low_to_high(versus.low, versus.high, lambda end: relative(end, base))
        return f"{relative(versus.difference, base)} ({interval})"
    return f"{scale.signed(versus.difference)} ({low_to_high(versus.low, versus.high, scale.signed)})"


def markdown(found: FurtherMetrics, report: ReportContent) -> Iterator[str]:
    yield from heading(TITLE)
    yield plain(found.note)
    yield ""
    heads = ["arm", *(plain(heading_of(column)) for column in found.columns)]
    yield from table(heads, [[plain(row.arm), *_cells(found, row.arm)] for row in report.rows])


def _cells(found: FurtherMetrics, arm: str) -> Iterator[str]:
    for column in found.columns:
        cell = column.arms[arm]
        if cell.versus is None:
            yield f"{mean_text(column, cell)}; reference"
        else:
            against = plain(cell.versus.reference)
            difference = f"{difference_text(column, cell.versus)} to {against}"
            yield f"{mean_text(column, cell)}; {difference}; **{cell.versus.word}**"


def names(*_: object) -> dict[str, Any]:
    return {"title": TITLE, **{show.__name__: show for show in (heading_of, mean_text, difference_text)}}


SECTION = ReportSection(__name__, gather, markdown, names)
