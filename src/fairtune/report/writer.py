"""Writing a study's report: every exporter renders the same content."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from fairtune.analysis.results import Results
from fairtune.core.errors import LedgerError
from fairtune.core.files import remove_leftovers, write_atomically
from fairtune.ledger.seals import run_state
from fairtune.report.content import ReportContent
from fairtune.report.evidence import make_evidence
from fairtune.report.html import HtmlExporter
from fairtune.report.json import JsonExporter
from fairtune.report.markdown import MarkdownExporter
from fairtune.report.sections.catalogue import SECTIONS

FOLDER = "report"
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
        for run in results.runs:
            if run.state.unnoted:
                run_state(run.folder, remember=True)
    except OSError as error:
        raise LedgerError(
            f"{folder}: the report cannot be written ({error.strerror}); fix that and try again."
        ) from None
    return written
