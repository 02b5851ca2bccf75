"""Writing a study's report: every exporter renders the same content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from fairtune.analysis.results import Results
from fairtune.analysis.timing_file import study_timing_json
from fairtune.core.errors import FairtuneError, LedgerError, nearest, one_of, shown
from fairtune.core.files import finite, remove_leftovers, write_atomically, write_json
from fairtune.ledger.seals import run_state
from fairtune.report.content import ReportContent
from fairtune.report.csv import CsvExporter
from fairtune.report.evidence import make_evidence
from fairtune.report.exporter import Exporter
from fairtune.report.html import HtmlExporter
from fairtune.report.json import JsonExporter
from fairtune.report.latex import LatexExporter
from fairtune.report.markdown import MarkdownExporter
from fairtune.report.sections.catalogue import SECTIONS

FOLDER, TIMING = "report", "timing.json"
LEFT_SECONDS = 3600.0
"""A file that has been half written for so long was left by a writer that was killed."""
EXPORTERS: dict[str, Exporter] = {
    "html": HtmlExporter(),
    "md": MarkdownExporter(),
    "json": JsonExporter(),
    "latex": LatexExporter(),
    "csv": CsvExporter(),
}
"""By the names that users write."""
USUAL = ("html", "md", "json")
"""Formats of a report that asks for none."""


def make_content(results: Results) -> ReportContent:
    """Everything a report of these results says."""
    evidence = make_evidence(results)
    found = {section.name: section.gather(evidence) for section in SECTIONS}
    return ReportContent(evidence.header, evidence.rows, found)


def exporters_of(formats: str | Iterable[str]) -> dict[str, Exporter]:
    """The exporters of some formats, in their order.

    Args:
        formats: names, or one text with commas between them.

    Raises:
        FairtuneError: there is no such format, or none is named.
    """
    given = formats.split(",") if isinstance(formats, str) else list(formats)
    names = [str(name).strip().lower() for name in given]
    found = {}
    for name in filter(None, names):
        exporter = EXPORTERS.get(name) or next((one for one in EXPORTERS.values() if one.name == name), None)
        if exporter is None:
            known = [*EXPORTERS, *(one.name for one in EXPORTERS.values())]
            raise FairtuneError(f"format: found {shown(name)}; allowed: {one_of(EXPORTERS)}.{nearest(name, known)}")
        found[name] = exporter
    if not found:
        raise FairtuneError(f"format: none is named; allowed: {one_of(EXPORTERS)}.")
    return found


def write_report(
    results: Results, formats: str | Sequence[str] = ("markdown", "json", "html"), folder: str | Path | None = None
) -> dict[str, Path]:
    """Write the report of a study; returns, by the format's name as it was given, the file, or the folder of several.

    Args:
        folder: where to; None is beside the study's runs, where its `timing.json` is brought up to date too.

    Raises:
        FairtuneError: there is no such format.
        LedgerError: the folder cannot be written.
    """
    exporters = exporters_of(formats)
    place = results.folder / FOLDER if folder is None else Path(folder)
    content = make_content(results)
    try:
        place.mkdir(parents=folder is not None, exist_ok=True)
        remove_leftovers(place, older_than=LEFT_SECONDS)
        for exporter in dict.fromkeys(exporters.values()):
            for name, written in exporter.files(content, results).items():
                path = place / PurePosixPath(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, written)
        if folder is None:
            _note_runs(results)
    except OSError as error:
        raise LedgerError(
            f"{place}: the report cannot be written ({error.strerror}); fix that, or name another folder with "
            "`fairtune report STUDY -o FOLDER`."
        ) from None
    return {name: place / exporter.place for name, exporter in exporters.items()}


def _note_runs(results: Results) -> None:
    """What is kept beside the runs: times in the published form, and that their files were found whole."""
    write_json(results.folder / TIMING, finite(study_timing_json(results)))
    for run in results.runs:
        run_state(run.folder, remember=True)
