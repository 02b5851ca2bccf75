"""Some rows as they were read: by column where all have the same, each with its own in JSONL; and their texts, checked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError
from fairtune.tasks.reading.formats import check_columns
from fairtune.tasks.reading.parquet import plain_values, require_plain

Row = dict[str, Any]


@dataclass(frozen=True)
class RowBatch:
    """Some rows.

    Args:
        where: the file, for messages.
        numbers: each row's number from 1, after any header; the line number in JSONL and plain text.
        given: the values of each column, in a list or an Arrow array; or the rows, where each has columns of its own.
        batch: the same as Arrow has them, where all columns of a Parquet file were asked for.
    """

    where: Path | str
    numbers: list[int]
    given: dict[str, Any] | list[Row]
    batch: Any = None

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def rows(self) -> list[Row]:
        """Each row's values by column."""
        if isinstance(self.given, list):
            return self.given
        columns = [self.values(column) for column in self.given] if self.batch is None else list(self.given.values())
        return [dict(zip(self.given, row, strict=True)) for row in zip(*columns, strict=True)]

    @property
    def columns(self) -> list[str]:
        """Every column that a row has, in the order of their coming."""
        if isinstance(self.given, dict):
            return list(self.given)
        return list(dict.fromkeys(itertools.chain.from_iterable(self.given)))

    def values(self, column: str) -> list[Any]:
        """What the rows have in a column, None where they do not have it.

        Raises:
            DataError: the column of a Parquet file is of a type that is neither text nor number.
        """
        if self.batch is not None:
            require_plain(self.where, self.batch.schema, [column])
            return plain_values(self.where, self.batch, column)
        if isinstance(self.given, list):
            return [row.get(column) for row in self.given]
        found = self.given.get(column, [None] * len(self))
        return found if isinstance(found, list) else found.to_pylist()

    def array(self, column: str) -> Any:
        """A column as Arrow has it; None where it was read row by row."""
        found = self.given.get(column) if isinstance(self.given, dict) and self.batch is None else None
        return None if isinstance(found, list) else found

    def texts(self, columns: Sequence[str]) -> list[tuple[str, ...]]:
        """The texts in one or two columns.

        Raises:
            DataError: a row without the column, with nothing in it (an empty text is a text), or with what is no text.
        """
        return list(zip(*(self._texts(column) for column in columns), strict=True))

    def _texts(self, column: str) -> list[str]:
        # Where columns are given, the first row is like all others.
        rows = self.given if isinstance(self.given, list) else [self.given]
        for number, row in zip(self.numbers, rows, strict=False):
            if column not in row:
                check_columns(f"{self.where}: row {number}", list(row), [column])
        found: list[str] = []
        texts = checked_texts(self.where, column, self.values(column), self.numbers)
        for number, text in zip(self.numbers, texts, strict=True):
            if text is None:
                raise DataError(f"{self.where}: row {number}: column '{column}' has no text; fill or remove the row.")
            found.append(text)
        return found


def checked_texts(where: Path | str, column: str, values: Sequence[Any], numbers: Sequence[int]) -> list[str | None]:
    """Values that are texts which can be tokenised, or nothing at all.

    Raises:
        DataError: the first that is neither, with its row.
    """
    texts = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    for number, text in zip(numbers, texts, strict=True):
        if text is not None and not isinstance(text, str):
            raise DataError(f"{where}: row {number}: column '{column}' holds {str(text)[:60]}, not a text.")
        require_unicode(where, number, column, text or "")
    return texts


def require_unicode(where: Path | str, number: int, column: str, text: str) -> None:
    """Refuse half of a character, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{where}: row {number}: column '{column}' holds half a character ({error.object[error.start]!r}); a text "
            "was cut in the middle of an emoji or the like. Fix or remove it."
        ) from None
