"""Writing a study's report: every exporter renders the same content."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from fairtune.analysis.results import Results
from fairtune.analysis.timing_file import study_timing_json
from fairtune.core.errors import LedgerError
from fairtune.core.files import finite, remove_leftovers, write_atomically, write_json
from fairtune.ledger.run_times import run_times
from fairtune.ledger.seals import run_state
from fairtune.report.content import ReportContent
from fairtune.report.evidence import make_evidence
from fairtune.report.html import HtmlExporter
from fairtune.report.json import JsonExporter
from fairtune.report.markdown import MarkdownExporter
from fairtune.report.sections.catalogue import SECTIONS

FOLDER, TIMING = "report", "timing.json"
LEFT_SECONDS = 3600.0
"""A file that has been half written for so long was left by a writer that was killed."""


class Exporter(Protocol):
    """Writes the report in one format."""

    name: str
    file_name: str

    def render(self, content: ReportContent) -> str: ...


EXPORTERS: tuple[Exporter, ...] = (MarkdownExporter(), JsonExporter(), HtmlExporter())


def make_content(results: Results) -> ReportContent:
    """Everything a report of these results says."""
    evidence = make_evidence(results)
    found = {section.name: section.gather(evidence) for section in SECTIONS}
    return ReportContent(evidence.header, evidence.rows, found)


def write_report(results: Results) -> dict[str, Path]:
    """Write the report of a study beside its runs; returns the paths by format.

    Raises:
        LedgerError: the folder cannot be written.
    """
    content = make_content(results)
    folder = results.folder / FOLDER
    written = {}
    try:
        folder.mkdir(exist_ok=True)
        remove_leftovers(folder, older_than=LEFT_SECONDS)
        for exporter in EXPORTERS:
            path = folder / exporter.file_name
            write_atomically(path, exporter.render(content).encode("utf-8", "replace"))
            written[exporter.name] = path
        write_json(results.folder / TIMING, _timing(results))
        for run in results.runs:
            if run.state.unnoted:
                run_state(run.folder, remember=True)
    except OSError as error:
        raise LedgerError(
            f"{folder}: the report cannot be written ({error.strerror}); fix that and try again."
        ) from None
    return written


def _timing(results: Results) -> dict[str, Any]:
    """The study's `timing.json`."""
    own = {
        arm: [found for run in results.finished(arm) if (found := run_times(run.result)) is not None]
        for arm in results.arms
    }
    timing: dict[str, Any] = finite(study_timing_json(results.plan, own, results.timing))
    return timing
