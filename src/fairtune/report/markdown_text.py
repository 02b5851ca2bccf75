"""The parts of Markdown that a report is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence


def section(title: str) -> tuple[str, ...]:
    return ("", f"## {title}", "")


def items(lines: Iterable[str], otherwise: str = "") -> list[str]:
    found = [f"- {line}" for line in lines]
    return found or [otherwise]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' for _ in heads)}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", one_line(text))


def one_line(text: str) -> str:
    return " ".join(text.split())
