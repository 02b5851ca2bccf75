"""What an exporter is: the report in one format, as one file or several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol

from fairtune.analysis.results import Results
from fairtune.report.content import ReportContent


class Exporter(Protocol):
    """Writes the report in one format.

    Args:
        name: of the format.
        place: the file that it writes, or the folder where there are several.
    """

    @property
    def name(self) -> str: ...
    @property
    def place(self) -> str: ...
    def files(self, content: ReportContent, results: Results) -> Mapping[str, bytes]:
        """What to write, by path within the report's folder; `/` parts folders."""
        ...


class TextExporter(ABC):
    """A format that is one text."""

    name: ClassVar[str]
    file_name: ClassVar[str]

    @property
    def place(self) -> str:
        return self.file_name

    @abstractmethod
    def render(self, content: ReportContent) -> str:
        """The text."""

    def files(self, content: ReportContent, _: Results) -> dict[str, bytes]:
        return {self.file_name: self.render(content).encode("utf-8", "replace")}
