"""How good a classifier is: figures of merit with intervals, from a confusion matrix, and the examples that it gets wrong.

Shares (accuracy, precision, recall) have Wilson's interval. F1 of one class is 2J / (1 + J), where J is the share of hits among all
examples that are of the class or are taken for it, so it has Wilson's interval of J. Macro-F1 and MCC have the Bayesian
bootstrap's: each cell of the matrix is drawn from its posterior, whose prior is worth two examples in all, so that a
classifier without a mistake is not taken for one that cannot make any. What follows from scores has it too, each example being
weighted at random; where all is ranked right, the rule of three for the rarest class says what may still go wrong.
"""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairtune.analysis import mistakes as study_mistakes
from fairtune.analysis.resampling import metric_from_totals
from fairtune.classifier.inputs import Given
from fairtune.core.printable import LINES, printable
from fairtune.settings.metrics import METRICS, classification_metrics, metrics_of_classes
from fairtune.settings.score_metrics import ScoredExamples
from fairtune.tasks.task import TEXT_COLUMNS, Labels

CONFIDENCE = 0.95
EDGES = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
DRAWS, CELLS_AT_ONCE = 2000, 4_000_000
FEWEST_DRAWS, WEIGHTS = 200, 10_000_000
"""Draws of weights for all examples: fewer of many examples, whose figures vary little."""
SEED = 20261116
Matrix = npt.NDArray[np.int64]
Interval = tuple[float, float]


def confusion(labels: Labels, predicted: Labels, classes: int) -> Matrix:
    """Counts; a row is a true class."""
    return np.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def wilson(hits: float, n: float) -> Interval:
    """Wilson's 95 % interval of so many hits among n."""
    return study_mistakes.wilson(hits / n if n else 0.0, n, CONFIDENCE)


def overall(matrix: Matrix, examples: ScoredExamples | None = None) -> list[dict[str, Any]]:
    """Every metric for so many classes: value, interval, and n. A share of examples has Wilson's interval, others are drawn.

    Args:
        examples: with their scores, for the metrics that counts do not tell.
    """
    n = int(matrix.sum())
    names = [name for name in metrics_of_classes(len(matrix)) if METRICS[name].has_line]
    values = {name: float(metric_from_totals(name)(matrix[None].astype(np.float64))[0]) for name in names}
    spans = {"accuracy": wilson(float(np.trace(matrix)), n)}
    if len(matrix) == 2:
        (right, _), (_, hits) = matrix.tolist()
        negatives, positives = matrix.sum(axis=1).tolist()
        spans["f1"] = _f1_interval(matrix, 1)
        spans["precision"] = wilson(hits, int(matrix[:, 1].sum()))
        spans |= {"recall": wilson(hits, positives), "specificity": wilson(right, negatives)}
    spans |= _bootstrapped(matrix, [name for name in names if name not in spans])
    return [
        {"metric": name, "value": value, "low": min(spans[name][0], value), "high": max(spans[name][1], value), "n": n}
        for name, value in values.items()
    ] + (_scored_figures(examples) if examples is not None and n else [])


def _scored_figures(examples: ScoredExamples) -> list[dict[str, Any]]:
    n, found = len(examples.labels), []
    values = classification_metrics(examples.labels, examples.scores)
    draws = min(DRAWS, max(FEWEST_DRAWS, WEIGHTS // n))
    prepared = {
        name: (value, facts.from_scores(examples))
        for name, value in values.items()
        if (facts := METRICS[name]).from_scores is not None and math.isfinite(value)
    }
    drawn: dict[str, list[npt.NDArray[np.float64]]] = {name: [] for name in prepared}
    generator, size = np.random.default_rng(SEED), max(1, CELLS_AT_ONCE // n)
    for start in range(0, draws, size):
        weights = generator.standard_exponential((min(size, draws - start), n))
        for name, (_, figure) in prepared.items():
            drawn[name].append(figure(weights))
    rarest = int(min(count for count in np.bincount(examples.labels) if count)) if n else 0
    for name, (value, _) in prepared.items():
        low, high = (float(end) for end in np.quantile(np.concatenate(drawn[name]), EDGES))
        if METRICS[name].ranks and value == 1:
            low = max(0.0, 1 - 3 / rarest)
        found.append({"metric": name, "value": value, "low": min(low, value), "high": max(high, value), "n": n})
    return found


def as_frame(figures: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(figures).set_index("metric")


def by_class(matrix: Matrix, classes: npt.NDArray[Any]) -> pd.DataFrame:
    """Precision, recall and F1 of each class, each with its interval and the examples that it stands on."""
    rows = []
    for number in range(len(matrix)):
        hits, true, taken = (float(x) for x in (matrix[number, number], matrix[number].sum(), matrix[:, number].sum()))
        spans = {
            "precision": (_share(hits, taken), wilson(hits, taken)),
            "recall": (_share(hits, true), wilson(hits, true)),
            "f1": (_share(2 * hits, true + taken), _f1_interval(matrix, number)),
        }
        row: dict[str, Any] = {"n": int(true), "predicted": int(taken)}
        for name, (value, (low, high)) in spans.items():
            row |= {name: value, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return pd.DataFrame(rows, index=pd.Index(classes, name="label"))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _f1_interval(matrix: Matrix, number: int) -> Interval:
    hits = float(matrix[number, number])
    low, high = wilson(hits, float(matrix[number].sum() + matrix[:, number].sum()) - hits)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def _bootstrapped(matrix: Matrix, names: list[str]) -> dict[str, Interval]:
    classes = len(matrix)
    posterior = matrix.astype(np.float64)
    places = np.arange(classes)
    posterior[places, places] += 1 / classes
    posterior[places, (places + 1) % classes] += 1 / classes
    cells = np.flatnonzero(posterior)
    generator = np.random.default_rng(SEED)
    found: dict[str, list[npt.NDArray[np.float64]]] = {name: [] for name in names}
    size = max(1, min(DRAWS, CELLS_AT_ONCE // classes**2))
    for start in range(0, DRAWS, size):
        draws = np.zeros((min(size, DRAWS - start), classes * classes))
        draws[:, cells] = generator.standard_gamma(posterior.flat[cells], size=(len(draws), len(cells)))
        for name in names:
            found[name].append(metric_from_totals(name)(draws.reshape(-1, classes, classes)))
    spans = {name: np.quantile(np.concatenate(parts), EDGES) for name, parts in found.items()}
    return {name: (float(low), float(high)) for name, (low, high) in spans.items()}


MOST_CLASSES_SHOWN = 12


class Mistakes(pd.DataFrame):
    """One row per mistake, the most confident first: text (and pair), label, predicted, confidence, and the probability that the
    right label got. The index is that of the data, or the position in it.

    Attributes:
        confusion: counts of all examples, right and wrong; a row is a true label, a column a predicted one.
        per_class: precision, recall and F1 of each label with 95 % intervals, and how many examples they stand on.
        overall: accuracy, macro-F1, MCC, ROC AUC, log loss and others with 95 % intervals.
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
    with np.errstate(divide="ignore"):  # a probability may be 0
        found.overall = as_frame(overall(matrix, ScoredExamples(labels, np.log(probabilities))))
    found.examples = len(given)
    return found


def _percent(row: Any) -> str:
    return f"{100 * row['value']:.1f} % ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
