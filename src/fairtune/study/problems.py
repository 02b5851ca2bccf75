"""What is wrong with a study file: where, in which key, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fairtune.core.errors import FairtuneError
from fairtune.core.printable import printable
from fairtune.study.yaml_tree import Path

MOST_SHOWN = 100
"""Problems that are reported for one study."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Args:
        where: file and line, or the command-line option.
        path: the key, dotted.
    """

    where: str
    path: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.path, self.message) if part)


class StudyError(FairtuneError):
    """A study cannot be used; lists every problem found."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(p) for p in problems))

    def as_json(self) -> list[dict[str, Any]]:
        return [asdict(p) for p in self.problems]


def dotted(path: Path) -> str:
    return printable("".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path)).lstrip(".")
