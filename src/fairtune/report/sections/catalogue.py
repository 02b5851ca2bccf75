"""The sections of a report, in the order of the page. A new one is a folder and one line here."""

from __future__ import annotations

from typing import Any

from fairtune.report.section import ReportSection
from fairtune.report.sections import (
    author_notes,
    baselines,
    claims,
    comparisons,
    costs,
    curves,
    data,
    decision_line,
    environment,
    findings,
    forest,
    further_metrics,
    maps,
    mistakes,
    notes,
    pareto,
    representation,
    results,
    samples,
    scores,
    signatures,
    start,
    trials,
    trouble,
)

SECTIONS: list[ReportSection[Any]] = [
    findings.SECTION,
    claims.SECTION,
    forest.SECTION,
    results.SECTION,
    further_metrics.SECTION,
    decision_line.SECTION,
    pareto.SECTION,
    curves.SECTION,
    costs.SECTION,
    comparisons.SECTION,
    trials.SECTION,
    baselines.SECTION,
    scores.SECTION,
    mistakes.SECTION,
    representation.SECTION,
    maps.SECTION,
    samples.SECTION,
    start.SECTION,
    data.SECTION,
    environment.SECTION,
    trouble.SECTION,
    author_notes.SECTION,
    notes.SECTION,
    signatures.SECTION,
]
