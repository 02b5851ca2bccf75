"""Which columns of a file hold the texts and the labels: as the user says, else as names and contents tell, else nobody guesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtune.core.errors import DataError, FairtuneError, one_of
from fairtune.core.printable import printable
from fairtune.settings.values import MOST_CLASSES
from fairtune.tasks.reading.columns import check_columns
from fairtune.tasks.reading.file_facts import ColumnFacts, FileFacts
from fairtune.tasks.reading.labels import refuse_scores, regression_error

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
SHORTEST_TEXT = 12
"""Characters that a text has at the least, on average, for its column to be taken by its length alone."""
CLEARLY_LONGER = 2.0
ROWS_PER_CLASS = 2
"""A column whose values are mostly different holds no labels."""
FEW_CLASSES = 20
"""So many may be different in a very small file."""
WORDS_OF_A_TEXT = 4
"""The name of a column has fewer."""
NAME_SHOWN, COLUMNS_SHOWN = 40, 30


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

    Raises:
        FairtuneError: there is no such column, or nothing tells which it is.
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
        missing = [option for option, found in (("--text", found_text), ("--label", found_label)) if not found]
        raise FairtuneError(_question(facts, missing))
    return ColumnChoice(found_text, found_label, why_text, why_label)


def require_header(facts: FileFacts, columns: ColumnChoice) -> None:
    """Refuse a table whose first line is a row like the others: its label is a label, and its text is a sentence.

    Raises:
        DataError: there is no header.
    """
    values, text = facts.columns[columns.label].values, columns.text[0]
    if facts.delimiter and values and columns.label in values and len(text.split()) >= WORDS_OF_A_TEXT:
        raise DataError(
            f"{facts.where}: the first line looks like a row, not like names of columns: '{printable(text)[:NAME_SHOWN]}' and "
            f"'{printable(columns.label)[:NAME_SHOWN]}'. Put a line such as `text,label` before it; if they are names, say so "
            "with --text and --label."
        )


def require_classes(facts: FileFacts, label: str) -> dict[str, int]:
    """How often each label occurs, the most frequent first.

    Raises:
        DataError: the column has one class only, no labels at all, or far too many.
    """
    column = facts.columns[label]
    if column.values is not None:
        refuse_scores(facts.where, label, column.values)
    elif column.example is not None:
        raise regression_error(facts.where, label, f"more than {MOST_CLASSES:,}", column.example)
    else:
        raise DataError(
            f"{facts.where}: column '{label}' has more different values than there can be classes, or long texts; name the column "
            f"with the labels. Columns: {_listed(facts)}"
        )
    if len(column.values) < 2:
        only = f"one class only ({next(iter(column.values))!r})" if column.values else "no label in any row"
        raise DataError(
            f"{facts.where}: column '{label}' has {only}; two classes or more are needed to learn to tell apart."
        )
    if len(column.values) > FEW_CLASSES and ROWS_PER_CLASS * len(column.values) > column.filled:
        raise DataError(
            f"{facts.where}: column '{label}' has {len(column.values):,} different values in {column.filled:,} rows; labels "
            f"repeat. Name the column with the labels. Columns: {_listed(facts)}"
        )
    return dict(column.values.most_common())


def _guess_label(facts: FileFacts, text: Sequence[str]) -> tuple[str | None, str]:
    likely = {name: column for name, column in facts.columns.items() if name not in text and _has_classes(column)}
    for wanted in LABEL_NAMES:
        for name in facts.columns:
            column = facts.columns[name]
            if name.strip().lower() == wanted and name not in text and (column.values is not None or column.example):
                return name, "by its name"
    if len(likely) == 1:
        return next(iter(likely)), "the only column with few different values"
    return None, ""


def _has_classes(column: ColumnFacts) -> bool:
    values = column.values
    return values is not None and len(values) >= 2 and ROWS_PER_CLASS * len(values) <= column.filled


def _guess_text(columns: dict[str, ColumnFacts]) -> tuple[tuple[str, ...], str]:
    texts = {name: column for name, column in columns.items() if column.texts and column.filled and _says_much(column)}
    by_name = {name.strip().lower(): name for name in reversed(list(texts))}
    for pair in PAIR_NAMES:
        if all(name in by_name for name in pair):
            return tuple(by_name[name] for name in pair), "a pair, by their names"
    for wanted in TEXT_NAMES:
        if wanted in by_name:
            return (by_name[wanted],), "by its name"
    longest = sorted(texts, key=lambda name: texts[name].mean_length, reverse=True)
    if longest and texts[longest[0]].mean_length >= SHORTEST_TEXT:
        first = texts[longest[0]].mean_length
        if len(longest) == 1 or first >= CLEARLY_LONGER * texts[longest[1]].mean_length:
            return (longest[0],), f"its texts are the longest, {first:.0f} characters on average"
    return (), ""


def _says_much(column: ColumnFacts) -> bool:
    """Whether its values are mostly different, and not all numbers."""
    return column.example is None and (column.values is None or 2 * len(column.values) > column.filled)


def _question(facts: FileFacts, missing: Sequence[str]) -> str:
    what = {"--text": "the texts", "--label": "the labels"}
    asked = " and ".join(what[option] for option in missing)
    options = " ".join(f"{option} COLUMN" for option in missing)
    return f"{facts.where}: which column holds {asked} is not clear; say {options}. Columns: {_listed(facts)}"


def _listed(facts: FileFacts) -> str:
    """The columns, each with what it holds."""
    columns = [f"{printable(name)[:NAME_SHOWN]} ({_content(column)})" for name, column in facts.columns.items()]
    return f"{one_of(columns, COLUMNS_SHOWN)}."


def _content(column: ColumnFacts) -> str:
    if not column.filled:
        return "empty"
    if column.values is not None and len(column.values) <= 20:
        return "1 value" if len(column.values) == 1 else f"{len(column.values)} values"
    return f"{column.mean_length:.0f} characters on average"
