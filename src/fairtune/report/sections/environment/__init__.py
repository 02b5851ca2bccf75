"""Environment: the machine and versions of the runs, and where they differ. For the page only."""

from __future__ import annotations

from fairtune.report.section import ReportSection

SECTION = ReportSection(
    __name__, lambda evidence: evidence.machine, json=lambda machine: {"machine": machine}, folded=True
)
