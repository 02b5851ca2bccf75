"""Titles in files: correct ones are read (BibTeX, tables with a column of titles, plain lines), made ones are written."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from fairtune.core.errors import DataError, one_of
from fairtune.core.files import write_atomically
from fairtune.tasks.reading.files import format_of, suffix_of
from fairtune.tasks.reading.reader import PLAIN_COLUMN, RowReader
from fairtune.tasks.titles.made_titles import MadeTitle

BIBTEX, TABLES = ("bib", "bibtex"), ("csv", "tsv", "jsonl", "parquet")
WRITTEN = (".csv", ".jsonl", ".jsonl.gz")
JOINED = re.compile(r"\s*#")
SIGN = re.compile(r"\\.|[{}\"]", re.DOTALL)
"""What opens and closes, and what a backslash takes along."""
ACCENTED = re.compile(r"\\(?:([`'^~\"=.])\s*|([uvHckrdb])(?:\s+|(?=\{)))(?:\{\s*\\?(\w)\s*\}|\\?(\w))")
MARKS = "`\u0300'\u0301^\u0302~\u0303\"\u0308=\u0304.\u0307u\u0306v\u030cH\u030bc\u0327k\u0328r\u030ad\u0323b\u0331"
ACCENTS = dict(zip(MARKS[::2], MARKS[1::2], strict=True))
LETTERS = """ss ß o ø O Ø l ł L Ł ae æ AE Æ oe œ OE Œ aa å AA Å i i j j S § ldots … dots … textendash – textemdash — alpha α beta β
    gamma γ delta δ epsilon ε lambda λ mu μ pi π sigma σ omega ω infty ∞ times × rightarrow → leq ≤"""
COMMANDS = dict(zip(*[iter(LETTERS.split())] * 2, strict=True))


def read_titles(files: Sequence[Path], column: str = "title", encoding: str | None = None) -> list[str]:
    """All the titles of some files, as they are written there.

    Raises:
        DataError: no such file, unknown format, wrongly encoded, no such column, no titles.
    """
    found: list[str] = []
    for file in files:
        titles = [title for title in _read(file, column, encoding) if title and not title.isspace()]
        if not titles:
            raise DataError(f"{file}: there are no titles in it; it needs at least one, as its format has them.")
        found.extend(titles)
    return found


def _read(file: Path, column: str, encoding: str | None) -> Iterable[str | None]:
    kind = format_of(file, (*BIBTEX, *TABLES, "txt"))
    name = column if kind in TABLES else PLAIN_COLUMN
    rows = RowReader(str(file), None if kind in TABLES else "txt", columns=[name], encoding=encoding)
    found = (text for some in rows for text in some.optional_texts(name))
    return bibtex_fields("\n".join(map(str, found)), column, str(file)) if kind in BIBTEX else found


def bibtex_fields(text: str, field: str, where: str) -> Iterator[str]:
    """One field wherever it is written, in braces or quotation marks; what `#` joins to something else is left out.

    Raises:
        DataError: a value that does not end, with its line.
    """
    name = re.compile(rf"(?<![\w:+/.-]){re.escape(field)}\s*=\s*(?=[{{\"])", re.IGNORECASE)
    end = 0
    while (found := name.search(text, end)) is not None:
        end = _closed(text, found.end(), where)
        if not JOINED.match(text, end):
            yield plain_text(text[found.end() + 1 : end - 1])


def _closed(text: str, start: int, where: str) -> int:
    """The place after what closes the brace or quotation mark at `start`."""
    depth, closing = 0, "}" if text[start] == "{" else '"'
    for sign in SIGN.finditer(text, start + 1):
        if depth == 0 and sign[0] == closing:
            return sign.end()
        depth += {"{": 1, "}": -1}.get(sign[0], 0)
    line = text.count("\n", 0, start) + 1
    raise DataError(f"{where}: line {line}: the '{text[start]}' that opens here is never closed.")


def plain_text(latex: str) -> str:
    """LaTeX as it would be printed: accents composed, commands and braces gone."""
    text = re.sub(r"(?<!\\)%.*\n\s*", "", latex)
    text = ACCENTED.sub(lambda m: unicodedata.normalize("NFC", (m[3] or m[4]) + ACCENTS[m[1] or m[2]]), text)
    text = re.sub(r"\\([A-Za-z]+)\*?\s*", lambda m: COMMANDS.get(m[1], ""), text)
    text = re.sub(r"\\([&%$#_{}])", r"\1\0", text)
    text = re.sub(r"[{}$](?!\0)", "", text).replace("\0", "")
    text = re.sub(r"\\[,;:! ]|~", " ", text).replace("\\", "")
    for written, printed in (("---", "—"), ("--", "–"), ("``", "“"), ("''", "”")):
        text = text.replace(written, printed)
    return " ".join(text.split())


def check_target(file: Path, overwrite: bool) -> None:
    """Refuse a place that must not be written, before any work is done.

    Raises:
        DataError: an unknown format, or a file that is there.
    """
    if not file.name.endswith(WRITTEN):
        raise DataError(
            f"{file}: unknown format '{suffix_of(file) or file.name}'; name the file with one of {one_of(WRITTEN)}."
        )
    if file.exists() and not overwrite:
        raise DataError(f"{file}: the file exists; choose another name, or add --force to replace it.")


def write_made(file: Path, made: Sequence[MadeTitle]) -> None:
    """Write the titles, whole or not at all."""
    rows, text = [asdict(row) for row in made], io.StringIO(newline="")
    if file.suffix == ".csv":
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        text.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    content = text.getvalue().encode()
    try:
        write_atomically(file, gzip.compress(content, mtime=0) if file.suffix == ".gz" else content)
    except OSError as error:
        raise DataError(f"{file}: cannot be written: {error.strerror or error}.") from None
