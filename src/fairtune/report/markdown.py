"""The report as GitHub-flavoured Markdown, for a README, an issue or a pull request: verdicts first, long parts folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairtune.core.markdown import folded
from fairtune.core.printable import printable
from fairtune.report.content import ReportContent
from fairtune.report.exporter import TextExporter
from fairtune.report.sections.catalogue import SECTIONS

HEADING, FENCE = "## ", "```"
LONG = 12
"""Lines from which on a part is folded."""
OPEN = ("Results", "Failures and exclusions")
"""Parts that are never folded: the verdicts, and what went wrong."""


class MarkdownExporter(TextExporter):
    """The text for places that show Markdown."""

    name, file_name = "markdown", "report.md"

    def render(self, content: ReportContent) -> str:
        lines = [line for part in _parts(_lines(content)) for line in _shown(part)]
        return printable("\n".join(lines), keep="\n") + "\n"


def _lines(content: ReportContent) -> Iterator[str]:
    for section in SECTIONS:
        found = content.sections[section.name]
        if found is not None:
            yield from section.markdown(found, content)


def _parts(lines: Iterable[str]) -> list[list[str]]:
    """Lines by the heading that they stand under; what looks like one within code is none."""
    parts: list[list[str]] = [[]]
    fenced = False
    for line in lines:
        fenced ^= line.startswith(FENCE)
        if line.startswith(HEADING) and not fenced:
            parts.append([])
        parts[-1].append(line)
    return parts


def _shown(part: list[str]) -> list[str]:
    """A part as it is, or folded below its heading if it is long."""
    if not part or not part[0].startswith(HEADING) or len(part) < LONG or part[0].removeprefix(HEADING) in OPEN:
        return part
    body = list(part[1:])
    while body and not body[0]:
        body.pop(0)
    while body and not body[-1]:
        body.pop()
    return [part[0], "", *folded("Show", body), ""]
