"""The parts of Markdown that reports and model cards are made of. Texts of others are shown as they are: no markup, no links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fairtune.core.printable import printable

SIGNS = re.compile(r"[\\`*_{}\[\]<>|#~$&]|:(?=//)|(?<=www)\.")
"""What means something anywhere in a line; addresses become links by themselves."""
CODE = re.compile(r"`([^`|]+)`")
"""Code in a sentence; one with a bar would end the cell of a table."""
BULLET = re.compile(r"^(\d{0,9})([-+=.)])(?=\s|$|\2)")
"""What means something where a line begins: bullets, numbers of a list, rules."""


def heading(title: str) -> tuple[str, ...]:
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
    return BULLET.sub(r"\1\\\2", SIGNS.sub(r"\\\g<0>", one_line(text)))


def prose(text: str) -> str:
    """A sentence of our own that Markdown shows as it is, but for what stands between backticks, which is code."""
    parts = CODE.split(one_line(text))
    shown = [code(part) if place % 2 else SIGNS.sub(r"\\\g<0>", part) for place, part in enumerate(parts)]
    return BULLET.sub(r"\1\\\2", "".join(shown))


def folded(summary: str, lines: Iterable[str]) -> list[str]:
    """Lines that a page shows when they are asked for, under a summary of our own words."""
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>"]


def code(text: str) -> str:
    """Text as code within a line, whatever is in it."""
    line = one_line(text) or " "
    fence = "`" * (_longest_run(line) + 1)
    edge = " " if "`" in (line[0], line[-1]) else ""
    return f"{fence}{edge}{line}{edge}{fence}"


def fenced(lines: Iterable[str], language: str = "") -> list[str]:
    """Lines as a block of code that none of them can end."""
    safe = [printable(line) for line in lines]
    fence = "`" * max(3, 1 + max(map(_longest_run, safe), default=0))
    return [f"{fence}{language}", *safe, fence]


def one_line(text: str) -> str:
    """Text without line breaks; codes in it are written out."""
    return " ".join(printable(text, keep="\n\r\t").split())


def _longest_run(text: str) -> int:
    """Of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)
