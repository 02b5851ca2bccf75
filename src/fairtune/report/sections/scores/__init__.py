"""Scores: every seed of every arm, all metrics of the kind, and the table of seeds."""

from __future__ import annotations

from typing import Any

from fairtune.report.content import ArmRow, ReportContent
from fairtune.report.section import ReportSection
from fairtune.report.sections.results.markdown import (
    LOSSES,
    detail_cells,
    detail_heads,
    metric_groups,
    target_cells,
    target_heads,
)
from fairtune.report.sections.scores.content import make_scores
from fairtune.settings.metrics import METRICS, metrics_of_kind


def names(rows: tuple[ArmRow, ...], report: ReportContent) -> dict[str, Any]:
    others = [name for name in metrics_of_kind("language_model") if name != report.header.metric]
    return {
        "plot": make_scores(report.header, rows),
        "groups": metric_groups(report.header, rows),
        "losses": LOSSES,
        **{show.__name__: show for show in (detail_heads, detail_cells, target_heads, target_cells)},
        "other_metrics": sorted(others, key=lambda name: METRICS[name].of_tokens),
        "of_tokens": sum(METRICS[name].of_tokens for name in others),
    }


SECTION = ReportSection(__name__, lambda evidence: evidence.rows, names=names, json=lambda _: {}, folded=True)
