"""What a section of a report is: a folder of its own, known to the rest by one line in `sections/catalogue.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Generic, TypeVar

from fairtune.report.content import Evidence, ReportContent

Content = TypeVar("Content")
TEMPLATE = "section.html.j2"


@dataclass(frozen=True)
class ReportSection(Generic[Content]):
    """One part of a report, from the evidence to every exporter.

    Args:
        package: its folder as a module's name; `section.html.j2` lies in it, and its last part is the section's name.
        gather: what the section says, as plain data; None where the study has nothing of the kind.
        markdown: its lines, heading included; none where it is for the page only.
        names: what its template uses besides `content` (what was gathered) and what every template has.
        json: its keys of report.json; else there is one, the section's name, and what was gathered.
        pictures: whether the page holds pictures of it that are not SVG.
        folded: whether the page shows only its heading, the `<h2>` that its template begins with, until a reader opens it.
    """

    package: str
    gather: Callable[[Evidence], Content | None]
    markdown: Callable[[Content, ReportContent], Iterable[str]] = lambda *_: ()
    names: Callable[[Content, ReportContent], Mapping[str, Any]] = lambda *_: {}
    json: Callable[[Content], Mapping[str, Any]] | None = None
    pictures: bool = False
    folded: bool = False

    @property
    def name(self) -> str:
        return self.package.rpartition(".")[2]

    def template(self) -> str:
        return (files(self.package) / TEMPLATE).read_text(encoding="utf-8")

    def json_keys(self, content: Content | None) -> Mapping[str, Any]:
        """What report.json has of it; null where there is nothing."""
        return {self.name: content} if content is None or self.json is None else self.json(content)
