"""The sections of a report, in the order of the page. A new one is a folder and one line here."""

from __future__ import annotations

from typing import Any

from fairtune.report.section import ReportSection
from fairtune.report.sections import (
    baselines,
    comparisons,
    costs,
    curves,
    data,
    decision_line,
    environment,
    findings,
    further_metrics,
    maps,
    mistakes,
    notes,
    representation,
    results,
    samples,
    signatures,
    start,
    trials,
    trouble,
)

SECTIONS: list[ReportSection[Any]] = [
    findings.SECTION,
    results.SECTION,
    further_metrics.SECTION,
    decision_line.SECTION,
    comparisons.SECTION,
    baselines.SECTION,
    trials.SECTION,
    data.SECTION,
    curves.SECTION,
    mistakes.SECTION,
    representation.SECTION,
    maps.SECTION,
    samples.SECTION,
    costs.SECTION,
    start.SECTION,
    environment.SECTION,
    trouble.SECTION,
    notes.SECTION,
    signatures.SECTION,
]
