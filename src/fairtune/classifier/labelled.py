"""Texts and labels from files, as `TextClassifier` takes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from fairtune.classifier.labels import class_name
from fairtune.core.errors import DataError, nearest, one_of
from fairtune.tasks.reading.columns import check_columns
from fairtune.tasks.reading.files import require_file
from fairtune.tasks.reading.labels import (
    NO_LABEL,
    label_values,
    merged_names,
    other_spellings,
    refuse_scores,
    without_label,
)
from fairtune.tasks.reading.reader import shard_batches

MOST_SHOWN = 20


@dataclass(frozen=True)
class Labelled:
    """Some rows of a file.

    Args:
        without: the numbers of the rows that have no label and were left out.
    """

    where: Path
    texts: pd.DataFrame
    labels: pd.Series
    without: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def counts(self) -> Counter[str]:
        return Counter(map(str, self.labels))

    def shared(self, others: Labelled) -> int:
        """How many of the rows have texts that other rows have too."""
        known = set(others.texts.itertuples(index=False, name=None))
        return sum(row in known for row in self.texts.itertuples(index=False, name=None))

    def with_labels_of(self, others: Labelled) -> Labelled:
        """The same rows with the labels as another file writes them: a CSV's "1" is a JSON's 1.

        Raises:
            DataError: a label that is not there.
        """
        known = {class_name(value): value for value in others.labels}
        for value in self.labels:
            if class_name(value) not in known:
                there = one_of(sorted(known)[:MOST_SHOWN])
                raise DataError(
                    f"{self.where}: the label '{value}' is not among those of {others.where}: {there}. "
                    f"A classifier that never saw it cannot predict it.{nearest(str(value), known)}"
                )
        labels = [known[class_name(value)] for value in self.labels]
        return replace(self, labels=pd.Series(labels, name=self.labels.name, dtype=object))


def read_labelled(
    path: Path,
    texts: Sequence[str],
    label: str,
    *,
    skip_unlabelled: bool = False,
    classes: Sequence[str] = (),
    encoding: str | None = None,
) -> Labelled:
    """The named columns of a file, or of a folder of files of one format.

    Args:
        texts: the column with the texts, or the two with pairs.
        skip_unlabelled: leave out rows without a label.
        classes: labels that are classes although they might mean that there is none, such as NA.
        encoding: of the file; None is UTF-8, or what its mark says.

    Raises:
        DataError: something about the file, its columns or a row of it cannot be used; it is named.
    """
    require_file(path)
    rows: list[tuple[str, ...]] = []
    labels: list[Any] = []
    without: dict[int, str | None] = {}
    seen, none = 0, NO_LABEL - set(classes)
    for chunk in shard_batches(path, encoding=encoding):
        check_columns(chunk.where, chunk.columns, [*texts, label])
        found = label_values(path, label, chunk.numbers, chunk.values(label))
        for number, text, value in zip(chunk.numbers, chunk.texts(texts), found, strict=True):
            if value is None or value in none:
                without[number] = value
            else:
                rows.append(text)
                labels.append(value)
        seen += len(chunk)
    words = set(filter(None, without.values()))
    if without and not (skip_unlabelled and labels):
        raise DataError(
            without_label(path, label, words, sorted(without), seen, "`--skip-unlabelled`", "`--labels A,B,...`")
        )
    if not classes:
        refuse_scores(path, label, Counter(map(str, labels)))
    table = pd.DataFrame(rows, columns=list(texts), dtype=object)
    return Labelled(path, table, pd.Series(_merged(labels), name=label, dtype=object), tuple(sorted(without)))


def _merged(labels: list[Any]) -> list[Any]:
    """Labels with one spelling for each number: of 1 and 1.0 in one file, 1."""
    texts = {value for value in labels if isinstance(value, str)}
    spelled = other_spellings(texts, merged_names(sorted(texts)))
    return [spelled.get(value, value) if isinstance(value, str) else value for value in labels]
