"""Kinds where another line of the page stands in the title's place."""

from __future__ import annotations

from fairtune.tasks.titles.corruption import Draws, kind
from fairtune.tasks.titles.phrases import expand_phrase


@kind(weight=4)
def running_header(title: str, draws: Draws) -> str | None:
    """A header or footer alone: page numbers, names, a shortened title."""
    return expand_phrase("running_header", draws, title)


@kind(weight=8)
def journal_line(title: str, draws: Draws) -> str | None:
    """A line about the publication alone: journal, volume, pages, conference, publisher, DOI or report number."""
    return expand_phrase("journal_line", draws, title)


@kind(weight=4)
def author_line(title: str, draws: Draws) -> str | None:
    """The authors' names alone, some with marks, e-mail, year or editor's role."""
    return expand_phrase("author_line", draws, title)


@kind(weight=5)
def affiliation_line(title: str, draws: Draws) -> str | None:
    """A place of work alone: a university, a department, an address."""
    return expand_phrase("affiliation_line", draws, title)


@kind(weight=9)
def section_word(title: str, draws: Draws) -> str | None:
    """A heading alone: "Abstract", "2. Related Work", "SUMMARY"."""
    return expand_phrase("section_word", draws, title)


@kind(weight=3)
def contents_line(title: str, draws: Draws) -> str | None:
    """A line of a table of contents, with dots and page numbers."""
    return expand_phrase("contents_line", draws, title)


@kind(weight=3)
def licence_line(title: str, draws: Draws) -> str | None:
    """A line about rights, copying or downloading."""
    return expand_phrase("licence_line", draws, title)


@kind(weight=8)
def front_matter(title: str, draws: Draws) -> str | None:
    """A line of a cover, a form or a thesis: "Prepared by", "Report Date", "Submitted to the Faculty of ..."."""
    return expand_phrase("front_matter", draws, title)


@kind(weight=4)
def body_text(title: str, draws: Draws) -> str | None:
    """A piece of running text, a caption or a list item."""
    return expand_phrase("body_text", draws, title)


@kind(weight=8)
def header_then_title(title: str, draws: Draws) -> str | None:
    """A header, a journal line or a page number stands before the title, or after it."""
    return expand_phrase("header_then_title", draws, title)


@kind(weight=6)
def section_then_title(title: str, draws: Draws) -> str | None:
    """A heading stands before the title: "Abstract Networks of Sensors", "1 Introduction Networks of Sensors"."""
    return expand_phrase("section_then_title", draws, title)


@kind(weight=4)
def title_and_authors(title: str, draws: Draws) -> str | None:
    """Authors stand before or after the title."""
    return expand_phrase("title_and_authors", draws, title)


@kind(weight=3)
def title_and_affiliation(title: str, draws: Draws) -> str | None:
    """A place of work stands before or after the title."""
    return expand_phrase("title_and_affiliation", draws, title)


@kind(weight=4)
def title_in_citation(title: str, draws: Draws) -> str | None:
    """A piece of a reference: initials or a year before the title, a place of publication after it."""
    return expand_phrase("title_in_citation", draws, title)


@kind(weight=5)
def title_then_note(title: str, draws: Draws) -> str | None:
    """A note stands after the title, or before it: where it was presented, who paid, where to find it."""
    return expand_phrase("title_then_note", draws, title)


@kind(weight=4, titles=2)
def two_titles(title: str, draws: Draws) -> str | None:
    """Two titles, or a title and a piece of another, run together as one line."""
    other = draws.another()
    piece = " ".join(other.split()[: draws.number(2, 5)])
    end = " ".join(title.split()[-draws.number(2, 4) :])
    return draws.pick(
        (f"{title} {other}", f"{title} {piece}", f"{piece} {title}", f"{end} {other}", f"{title}; {piece}")
    )


@kind(weight=1)
def repeated_title(title: str, draws: Draws) -> str | None:
    """The title, or its beginning, is there twice."""
    words = title.split()
    if len(words) < 3:
        return None
    again = " ".join(words[: draws.number(2, len(words))])
    return draws.pick((f"{again} {title}", f"{title} {again}", f"{title.upper()} {again}"))
