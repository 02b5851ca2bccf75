"""Results: figures of every arm, their seeds, and how they compare with the reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from fairtune.analysis.ledger_runs import steps_text
from fairtune.core.markdown import heading
from fairtune.report.content import ArmRow, ReportContent
from fairtune.report.figures.kept import kept_figure
from fairtune.report.section import ReportSection
from fairtune.report.sections.results.markdown import result_lines, text_result_lines, verdict_lines
from fairtune.settings.metrics import METRICS, metrics_of_kind

Rows = tuple[ArmRow, ...]


def names(rows: Rows, report: ReportContent) -> dict[str, Any]:
    compared = any(row.versus and row.versus.low is not None for row in rows)
    others = [name for name in metrics_of_kind("language_model") if name != report.header.metric]
    return {
        "scores": Markup(
            kept_figure("results.figure:scores_svg", report.header, rows)
        ),  # of our own making; matplotlib escapes the names in it
        "differences": Markup(kept_figure("results.figure:differences_svg", report.header, rows)) if compared else None,
        "steps_text": steps_text,
        "other_metrics": sorted(others, key=lambda name: METRICS[name].of_tokens),
        "of_tokens": sum(METRICS[name].of_tokens for name in others),
    }


def markdown(rows: Rows, report: ReportContent) -> Iterator[str]:
    yield from heading("Results")
    yield from verdict_lines(report.header, rows)
    yield from (result_lines if report.header.text is None else text_result_lines)(report.header, rows)


SECTION = ReportSection(__name__, lambda evidence: evidence.rows, markdown, names, json=lambda rows: {"rows": rows})
