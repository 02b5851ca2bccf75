"""The examples that a classifier gets wrong, as a table, with the confusion matrix and the figures of each class beside it."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairtune.classifier.figures import by_class, confusion, overall
from fairtune.classifier.inputs import Given
from fairtune.core.printable import LINES, printable
from fairtune.tasks.task import TEXT_COLUMNS, Labels

MOST_CLASSES_SHOWN = 12


class Mistakes(pd.DataFrame):
    """One row a mistake, the most confident first: text (and pair), label, predicted, confidence, and the probability that the
    right label got. The index is that of the data, or the position in it.

    Attributes:
        confusion: counts of all examples, right and wrong; a row is a true label, a column a predicted one.
        per_class: precision, recall and F1 of each label with 95 % intervals, and how many examples they stand on.
        overall: accuracy, macro-F1 and MCC with 95 % intervals.
        examples: how many there were.
    """

    _metadata = ["confusion", "per_class", "overall", "examples"]  # noqa: RUF012 - pandas' own name and form
    confusion: pd.DataFrame
    per_class: pd.DataFrame
    overall: pd.DataFrame
    examples: int

    @property
    def _constructor(self) -> type[Mistakes]:
        return Mistakes

    @property
    def summary(self) -> str:
        """What a person wants to know first."""
        if getattr(self, "overall", None) is None:
            return ""
        accuracy, f1 = self.overall.loc["accuracy"], self.overall.loc["macro_f1"]
        wrong = self.examples - int(np.trace(self.confusion.to_numpy()))
        lines = [
            f"{wrong:,} of {self.examples:,} examples wrong; accuracy {_percent(accuracy)}, macro-F1 {_percent(f1)}, 95 % intervals"
        ]
        worst = self._most_often()
        if worst:
            lines.append(f"most often: {', '.join(worst)}")
        if len(self.confusion) <= MOST_CLASSES_SHOWN:
            lines += ["", self.confusion.to_string()]
        return "\n".join(lines)

    def _most_often(self) -> list[str]:
        counts, names = self.confusion.to_numpy().copy(), list(self.confusion.index)
        np.fill_diagonal(counts, 0)
        worst = np.argsort(-counts, axis=None, kind="stable")[:3]
        cells = [np.unravel_index(cell, counts.shape) for cell in worst]
        return [
            f"{names[true]} taken for {names[taken]} ({counts[true, taken]})"
            for true, taken in cells
            if counts[true, taken]
        ]

    def __repr__(self) -> str:
        table = str(pd.DataFrame.__repr__(self))
        return printable(f"{self.summary}\n\n{table}" if self.summary else table, LINES)

    def _repr_html_(self) -> str | None:
        table = super()._repr_html_()  # type: ignore[misc]
        return printable(f"<pre>{html.escape(self.summary)}</pre>{table}", LINES)


def find_mistakes(
    given: Given, labels: Labels, probabilities: npt.NDArray[np.float64], classes: npt.NDArray[Any]
) -> Mistakes:
    """The mistakes among examples with these labels, numbered as the columns of the probabilities are."""
    predicted = probabilities.argmax(axis=1)
    rows = np.flatnonzero(predicted != labels)
    rows = rows[np.argsort(-probabilities[rows, predicted[rows]], kind="stable")]
    index = pd.RangeIndex(len(given)) if given.index is None else pd.Index(given.index)
    texts = {
        name: [given.texts[row][part] for row in rows] for part, name in enumerate(TEXT_COLUMNS[: max(1, given.width)])
    }
    found = Mistakes(
        {
            **texts,
            "label": classes[labels[rows]],
            "predicted": classes[predicted[rows]],
            "confidence": probabilities[rows, predicted[rows]],
            "probability_of_label": probabilities[rows, labels[rows]],
        },
        index=index[rows],
    )
    matrix = confusion(labels, predicted, len(classes))
    found.confusion = pd.DataFrame(
        matrix, index=pd.Index(classes, name="label"), columns=pd.Index(classes, name="predicted")
    )
    found.per_class = by_class(matrix, classes)
    found.overall = pd.DataFrame(overall(matrix)).set_index("metric")
    found.examples = len(given)
    return found


def _percent(row: Any) -> str:
    return f"{100 * row['value']:.1f} % ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
