"""What is in a file of rows, seen by looking through it once: how it is written, its columns, and what each of them holds.

For whoever has to choose columns before anything is trained. Neither torch nor Arrow is imported, unless the file is Parquet.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError
from fairtune.settings.values import MOST_CLASSES
from fairtune.tasks.reading.files import require_file, shards
from fairtune.tasks.reading.labels import NO_LABEL, is_number
from fairtune.tasks.reading.reader import RowReader

MOST_ROWS = 100_000
"""Rows that are looked at: enough to know the columns, in a second or two."""
LONGEST_VALUE = 200
"""Characters up to which different values are counted; longer ones are texts."""


@dataclass
class ColumnFacts:
    """What the rows have in one column.

    Args:
        filled: rows with something in it.
        missing: rows with nothing in it, or with a word that means nothing, such as NaN.
        characters: of all values together, as they are written.
        texts: whether every value is a text, as all are in CSV and TSV.
        example: one of the values where all are numbers, with a fraction if one has; None where one is something else.
        values: how often each value occurs; None where there are more than can be classes, or they are long.
    """

    filled: int = 0
    missing: int = 0
    characters: int = 0
    texts: bool = True
    example: str | None = None
    values: Counter[str] | None = field(default_factory=Counter)

    @property
    def mean_length(self) -> float:
        """Characters of a value."""
        return self.characters / self.filled if self.filled else 0.0

    def add(self, value: Any) -> None:
        """Count one row's value."""
        text = "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value).strip()
        if not text or text in NO_LABEL:
            self.missing += 1
            return
        self.filled += 1
        self.characters += len(text)
        self.texts = self.texts and isinstance(value, str)
        if not is_number(text):
            self.example = None
        elif self.filled == 1 or (self.example is not None and float(self.example).is_integer()):
            self.example = text
        if self.values is not None:
            self.values[text] += 1
            if len(text) > LONGEST_VALUE or len(self.values) > MOST_CLASSES:
                self.values = None


@dataclass(frozen=True)
class FileFacts:
    """A file, or a folder of files of one format.

    Args:
        encoding: as Python calls it.
        delimiter: between the columns of CSV and TSV; None in other formats.
        columns: by name, in the order of their coming.
        rows: that were looked at.
        whole: whether those are known to be all.
    """

    where: Path
    format: str
    encoding: str
    delimiter: str | None
    columns: dict[str, ColumnFacts]
    rows: int
    whole: bool


def describe_file(path: Path, encoding: str | None = None, most: int = MOST_ROWS) -> FileFacts:
    """Look through a file, at most at so many rows.

    Args:
        encoding: as a user calls it; None is UTF-8, or what the file's mark says.

    Raises:
        DataError: it is not there, cannot be read, or has no rows; a damaged row.
    """
    require_file(path)
    columns: dict[str, ColumnFacts] = {}
    rows = 0
    reader: RowReader | None = None
    for file in shards(path):
        reader = RowReader(str(file), encoding=encoding)
        for batch in reader:
            for row in batch.rows[: most - rows]:
                for name, value in row.items():
                    columns.setdefault(name, ColumnFacts()).add(value)
            rows += len(batch)
            if rows >= most:
                return _facts(path, reader, columns, most, whole=False)
    if reader is None:
        raise DataError(f"{path}: there are no rows.")
    return _facts(path, reader, columns, rows, True)


def _facts(path: Path, reader: RowReader, columns: dict[str, ColumnFacts], rows: int, whole: bool) -> FileFacts:
    for facts in columns.values():  # a row of JSONL may lack a column
        facts.missing = rows - facts.filled
    return FileFacts(path, reader.format, reader.encoding, reader.delimiter, columns, rows, whole)
