"""Notes of the author: what a study file says about its findings and problems, as it is written there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairtune.core.markdown import heading, items, plain
from fairtune.report.content import Evidence, ReportContent
from fairtune.report.section import ReportSection

Notes = tuple[str, ...]
TITLE = "Notes of the author"
OWN_WORDS = "These are the author's own words, from the study file. fairtune neither computed nor checked them."


def gather(evidence: Evidence) -> Notes | None:
    found = evidence.results.plan.get("author_notes")
    return tuple(map(str, found)) if isinstance(found, list) and found else None


def markdown(notes: Notes, _: ReportContent) -> Iterator[str]:
    yield from heading(TITLE)
    yield OWN_WORDS
    yield ""
    yield from items("  \n  ".join(plain(line) for line in note.splitlines() if line.strip()) for note in notes)


def names(*_: object) -> dict[str, Any]:
    return {"title": TITLE, "own_words": OWN_WORDS}


SECTION = ReportSection(__name__, gather, markdown, names)
