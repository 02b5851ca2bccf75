"""The report as GitHub-flavoured Markdown, for a README, an issue or a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.core.printable import printable
from fairtune.report.content import ReportContent
from fairtune.report.exporter import TextExporter
from fairtune.report.sections.catalogue import SECTIONS


class MarkdownExporter(TextExporter):
    """The text for places that show Markdown."""

    name, file_name = "markdown", "report.md"

    def render(self, content: ReportContent) -> str:
        return printable("\n".join(_lines(content)), keep="\n") + "\n"


def _lines(content: ReportContent) -> Iterator[str]:
    for section in SECTIONS:
        found = content.sections[section.name]
        if found is not None:
            yield from section.markdown(found, content)
