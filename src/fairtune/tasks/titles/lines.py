"""Kinds where another line of the page stands in the title's place."""

from __future__ import annotations

from fairtune.tasks.titles.draws import Draws
from fairtune.tasks.titles.kinds import kind
from fairtune.tasks.titles.phrases import say


@kind(weight=4)
def running_header(title: str, draws: Draws) -> str | None:
    """A header or footer alone: page numbers, names, a shortened title."""
    return say("running_header", draws, title)


@kind(weight=8)
def journal_line(title: str, draws: Draws) -> str | None:
    """A line about the publication alone: journal, volume, pages, conference, publisher, DOI or report number."""
    return say("journal_line", draws, title)


@kind(weight=4)
def author_line(title: str, draws: Draws) -> str | None:
    """The authors' names alone, some with marks, e-mail, year or editor's role."""
    return say("author_line", draws, title)


@kind(weight=5)
def affiliation_line(title: str, draws: Draws) -> str | None:
    """A place of work alone: a university, a department, an address."""
    return say("affiliation_line", draws, title)


@kind(weight=9)
def section_word(title: str, draws: Draws) -> str | None:
    """A heading alone: "Abstract", "2. Related Work", "SUMMARY"."""
    return say("section_word", draws, title)


@kind(weight=3)
def contents_line(title: str, draws: Draws) -> str | None:
    """A line of a table of contents, with dots and page numbers."""
    return say("contents_line", draws, title)


@kind(weight=3)
def licence_line(title: str, draws: Draws) -> str | None:
    """A line about rights, copying or downloading."""
    return say("licence_line", draws, title)


@kind(weight=8)
def front_matter(title: str, draws: Draws) -> str | None:
    """A line of a cover, a form or a thesis: "Prepared by", "Report Date", "Submitted to the Faculty of ..."."""
    return say("front_matter", draws, title)


@kind(weight=4)
def body_text(title: str, draws: Draws) -> str | None:
    """A piece of running text, a caption or a list item."""
    return say("body_text", draws, title)
