"""Which columns of a file hold the texts and the labels: as the user says, else as names and contents tell, else nobody guesses.

Neither torch nor Arrow is imported, unless the file needs Arrow to be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError, FairtuneError, one_of
from fairtune.core.numbers import plural
from fairtune.core.printable import printable
from fairtune.settings.values import MOST_CLASSES
from fairtune.tasks.reading.columns import check_columns
from fairtune.tasks.reading.files import require_file, shards
from fairtune.tasks.reading.labels import NO_LABEL, is_number, refuse_scores
from fairtune.tasks.reading.reader import RowReader

TEXT_NAMES = (
    "text", "texts", "sentence", "review", "reviews", "title", "content", "body", "message", "comment", "tweet", "document",
    "abstract", "description", "question", "utterance", "headline", "post",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "class", "classes", "category", "target", "sentiment", "stars", "rating", "intent", "topic", "y", "gold",
    "is_spam", "spam", "toxic",
)  # fmt: skip
PAIR_NAMES = (
    ("premise", "hypothesis"), ("sentence1", "sentence2"), ("question1", "question2"), ("text1", "text2"),
    ("text_a", "text_b"), ("question", "sentence"),
)  # fmt: skip
MOST_ROWS = 100_000
"""Rows that are looked at: enough to know the columns, in a second or two."""
LONGEST_VALUE = 200
"""Characters up to which different values are counted; longer ones are texts."""
SHORTEST_TEXT, CLEARLY_LONGER = 12, 2.0
"""Characters that a text has at the least, on average, for its column to be taken by its length alone; and how many times as
many as those of any other."""
ROWS_PER_CLASS = 2
"""A column whose values are mostly different holds no labels."""
FEW_CLASSES = 20
"""So many may be different in a very small file."""
WORDS_OF_A_TEXT = 4
"""The name of a column has fewer."""
NAME_SHOWN, COLUMNS_SHOWN = 40, 30


@dataclass
class ColumnFacts:
    """What the rows have in one column.

    Args:
        filled: rows with something in it, other than a word that means nothing, such as NaN.
        characters: of all values together, as they are written.
        texts: whether every value is a text, as all are in CSV and TSV.
        values: how often each value occurs; None where one is long.
    """

    filled: int = 0
    characters: int = 0
    texts: bool = True
    values: Counter[str] | None = field(default_factory=Counter)

    @property
    def mean_length(self) -> float:
        """Characters of a value."""
        return self.characters / self.filled if self.filled else 0.0

    @property
    def has_classes(self) -> bool:
        """Whether its values repeat, and are no more than there can be classes."""
        different = 0 if self.values is None else len(self.values)
        return 2 <= different <= min(MOST_CLASSES, self.filled // ROWS_PER_CLASS)

    @property
    def says_much(self) -> bool:
        """Whether its values are texts, mostly different, and not all numbers."""
        if not self.texts or not self.filled or self.values is None:
            return self.texts and self.filled > 0
        return 2 * len(self.values) > self.filled and not all(map(is_number, self.values))

    def add(self, value: Any) -> None:
        """Count one row's value."""
        text = str(value).strip()
        if text and text not in NO_LABEL:
            self.filled += 1
            self.characters += len(text)
            self.texts = self.texts and isinstance(value, str)
            if len(text) > LONGEST_VALUE:
                self.values = None
            elif self.values is not None:
                self.values[text] += 1

    def __str__(self) -> str:
        if not self.filled:
            return "empty"
        if self.values is not None and len(self.values) <= FEW_CLASSES:
            return plural(len(self.values), "value")
        return f"{self.mean_length:.0f} characters on average"


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

    def __str__(self) -> str:
        columns = [f"{printable(name)[:NAME_SHOWN]} ({column})" for name, column in self.columns.items()]
        return f"{one_of(columns, COLUMNS_SHOWN)}."


def describe_file(path: Path, encoding: str | None = None, most: int = MOST_ROWS) -> FileFacts:
    """Look through a file, at most at so many rows.

    Args:
        encoding: as a user calls it; None is UTF-8, or what the file's mark says.
    """
    require_file(path)
    columns: dict[str, ColumnFacts] = {}
    rows = 0
    for file in shards(path):
        reader = RowReader(str(file), encoding=encoding)
        for row in islice(chain.from_iterable(batch.rows for batch in reader), most - rows):
            rows += 1
            for name, value in row.items():
                columns.setdefault(name, ColumnFacts()).add(value)
        if rows == most:
            break
    return FileFacts(path, reader.format, reader.encoding, reader.delimiter, columns, rows, rows < most)


@dataclass(frozen=True)
class ColumnChoice:
    """The columns of a task.

    Args:
        text: one column, or the two of a pair.
        why_text, why_label: what spoke for them, in words.
    """

    text: tuple[str, ...]
    label: str
    why_text: str
    why_label: str


def choose_task_columns(facts: FileFacts, text: Sequence[str] = (), label: str | None = None) -> ColumnChoice:
    """The columns with texts and labels.

    Args:
        text, label: as the user named them, if so.
    """
    check_columns(facts.where, list(facts.columns), [*text, *([label] if label else [])])
    if len(text) > 2:
        raise FairtuneError(f"--text is given {len(text)} times; a text is one column, a pair two.")
    if len(set(text)) < len(text) or label in text:
        raise FairtuneError("--text and --label must name different columns.")
    found_label, why_label = (label, "as --label says") if label else _guess_label(facts, text)
    others = {name: column for name, column in facts.columns.items() if name != found_label}
    found_text, why_text = (tuple(text), "as --text says") if text else _guess_text(others)
    if found_label is None or not found_text:
        missing = {"--text COLUMN": "the texts"} if not found_text else {}
        missing |= {"--label COLUMN": "the labels"} if found_label is None else {}
        raise FairtuneError(
            f"{facts.where}: which column holds {' and '.join(missing.values())} is not clear; say {' '.join(missing)}. "
            f"Columns: {facts}"
        )
    return ColumnChoice(found_text, found_label, why_text, why_label)


def require_header(facts: FileFacts, columns: ColumnChoice) -> None:
    """Refuse a table whose first line is a row like the others: its label is a label, and its text is a sentence."""
    values, text = facts.columns[columns.label].values, columns.text[0]
    if facts.delimiter and values and columns.label in values and len(text.split()) >= WORDS_OF_A_TEXT:
        raise DataError(
            f"{facts.where}: the first line looks like a row, not like names of columns: '{printable(text)[:NAME_SHOWN]}' and "
            f"'{printable(columns.label)[:NAME_SHOWN]}'. Put a line such as `text,label` before it; if they are names, say so "
            "with --text and --label."
        )


def require_classes(facts: FileFacts, label: str) -> dict[str, int]:
    """How often each label occurs, the most frequent first."""
    column = facts.columns[label]
    values = column.values or Counter()
    refuse_scores(facts.where, label, values)
    if column.has_classes or 2 <= len(values) <= FEW_CLASSES:
        return dict(values.most_common())
    if len(values) > 1 or column.values is None:
        different = f"{len(values):,} different values" if values else "long texts"
        wrong = (
            f"{different} in {column.filled:,} rows; labels repeat, and are {MOST_CLASSES:,} at most. Name the column with the "
            f"labels. Columns: {facts}"
        )
    else:
        only = f"one class only ({next(iter(values))!r})" if values else "no label in any row"
        wrong = f"{only}; two classes or more are needed to learn to tell apart."
    raise DataError(f"{facts.where}: column '{label}' has {wrong}")


def _guess_label(facts: FileFacts, text: Sequence[str]) -> tuple[str | None, str]:
    likely = {name: column for name, column in facts.columns.items() if name not in text and column.values is not None}
    for wanted in LABEL_NAMES:
        for name in likely:
            if name.strip().lower() == wanted:
                return name, "by its name"
    repeating = [name for name, column in likely.items() if column.has_classes]
    return (repeating[0], "the only column with few different values") if len(repeating) == 1 else (None, "")


def _guess_text(columns: dict[str, ColumnFacts]) -> tuple[tuple[str, ...], str]:
    texts = {name: column for name, column in columns.items() if column.says_much}
    by_name = {name.strip().lower(): name for name in reversed(list(texts))}
    for pair in PAIR_NAMES:
        if all(name in by_name for name in pair):
            return tuple(by_name[name] for name in pair), "a pair, by their names"
    for wanted in TEXT_NAMES:
        if wanted in by_name:
            return (by_name[wanted],), "by its name"
    lengths = sorted((column.mean_length for column in texts.values()), reverse=True)
    if lengths and lengths[0] >= max(SHORTEST_TEXT, CLEARLY_LONGER * (*lengths, 0.0)[1]):
        longest = max(texts, key=lambda name: texts[name].mean_length)
        return (longest,), f"its texts are the longest, {lengths[0]:.0f} characters on average"
    return (), ""
