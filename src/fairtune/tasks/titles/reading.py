"""Correct titles from files: BibTeX, tables with a column of titles, plain lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.tasks.reading.formats import read_chunks, read_whole, told_of
from fairtune.tasks.titles.bibtex import bibtex_fields
from fairtune.tasks.titles.vocabulary import FORM_WORDS, SECTIONS

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
LINES = (".txt",)
BIBTEX = (".bib", ".bibtex")
MOST_WORDS = 40
NO_TITLE = re.compile(
    r"(the )?(proceedings|abstracts?|letter|editorial|erratum|corrigendum|correction|book reviews?)( of\b|:)|front ?matter"
)
MARKUP = re.compile(r"</?(?:i|b|em|sub|sup|strong)>", re.IGNORECASE)
NO_LETTERS = re.compile(r"[\W_]+")
HEADINGS = frozenset(word.lower() for word in (*SECTIONS, *FORM_WORDS))


def read_titles(files: Sequence[Path], column: str = "title") -> list[str]:
    """All the titles of some files, as they are written there.

    Raises:
        DataError: no such file, unknown format, not UTF-8, no such column, no titles.
    """
    found: list[str] = []
    for file in files:
        titles = [title for title in _read(file, column) if title and not title.isspace()]
        if not titles:
            raise DataError(f"{file}: there are no titles in it; it needs at least one, as its format has them.")
        found.extend(titles)
    return found


def usable_titles(titles: Iterable[str | None]) -> list[str]:
    """Titles fit for making examples: tidied, each once; without empty ones, single words, headings and whole paragraphs."""
    kept: dict[str, str] = {}
    for title in titles:
        text = tidied(title or "")
        key = text.lower()
        if 2 <= len(text.split()) <= MOST_WORDS and key not in HEADINGS and not NO_TITLE.match(key):
            kept.setdefault(comparable(text), text)
    return list(kept.values())


def tidied(title: str) -> str:
    """One line without markup, the brackets of translated titles, or a final full stop, which some sources always write."""
    text = " ".join(MARKUP.sub("", title).split())
    if text.startswith("[") and text.rstrip(".").endswith("]"):
        text = text.rstrip(".")[1:-1].strip()
    return text[:-1].rstrip() if text.endswith(".") and not text.endswith("..") else text


def comparable(title: str) -> str:
    """Letters and digits alone: two titles that differ in nothing else are one."""
    return NO_LETTERS.sub("", title.lower()) or title


def _read(file: Path, column: str) -> Iterable[str | None]:
    kind = (file.with_suffix("") if file.suffix.lower() == ".gz" else file).suffix.lower()
    if kind in TABLES:
        return _column(file, column)
    if kind in BIBTEX:
        return bibtex_fields(_text(file), column, str(file))
    if kind in LINES:
        return _text(file).splitlines()
    allowed = one_of((*BIBTEX, *TABLES, *LINES))
    raise DataError(f"{file}: unknown format '{kind or file.name}'; allowed: {allowed}, each also .gz.")


def _column(file: Path, column: str) -> Iterator[str | None]:
    for chunk in read_chunks(file, [column]):
        for number, value in zip(chunk.numbers, chunk.values[column], strict=True):
            if not isinstance(value, str | None):
                raise DataError(f"{file}: row {number}: column '{column}' holds {str(value)[:60]}, not a title.")
            yield value


def _text(file: Path) -> str:
    """A file's text, with or without a byte order mark."""
    if not file.is_file():
        around = [str(path) for path in file.parent.glob("*")] if file.parent.is_dir() else []
        what = (
            "that is a folder; name a file." if file.is_dir() else f"there is no such file.{nearest(str(file), around)}"
        )
        raise DataError(f"{file}: {what}")
    with told_of(file):
        content = read_whole(file)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{file}: line {line} is not UTF-8 (byte 0x{content[error.start]:02x}); save it as UTF-8 "
            "(`iconv -f LATIN1 -t UTF-8`)."
        ) from None
