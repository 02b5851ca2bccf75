"""Figures of merit with intervals, from a confusion matrix.

Shares (accuracy, precision, recall) have Wilson's interval. F1 of one class is 2J / (1 + J), where J is the share of hits among all
examples that are of the class or are taken for it, so it has Wilson's interval of J. Macro-F1 and MCC have the Bayesian
bootstrap's: each cell of the matrix is drawn from its posterior, whose prior is worth two examples in all, so that a
classifier without a mistake is not taken for one that cannot make any.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairtune.analysis import mistakes
from fairtune.analysis.resampling import metric_from_totals
from fairtune.tasks.task import Labels

CONFIDENCE = 0.95
DRAWS, CELLS_AT_ONCE = 2000, 4_000_000
SEED = 20261116
Matrix = npt.NDArray[np.int64]
Interval = tuple[float, float]


def confusion(labels: Labels, predicted: Labels, classes: int) -> Matrix:
    """Counts; a row is a true class."""
    return np.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def wilson(hits: float, n: float) -> Interval:
    """Wilson's 95 % interval of so many hits among n."""
    return mistakes.wilson(hits / n if n else 0.0, n, CONFIDENCE)


def overall(matrix: Matrix) -> list[dict[str, Any]]:
    """Accuracy, macro-F1, MCC, and F1 of the second of two classes: value, interval, and n."""
    n = int(matrix.sum())
    names = ["accuracy", "macro_f1", "mcc", *(["f1"] if len(matrix) == 2 else [])]
    values = {name: float(metric_from_totals(name)(matrix[None].astype(np.float64))[0]) for name in names}
    spans = {"accuracy": wilson(float(np.trace(matrix)), n), **_bootstrapped(matrix, ["macro_f1", "mcc"])}
    if len(matrix) == 2:
        spans["f1"] = _f1_interval(matrix, 1)
    return [
        {"metric": name, "value": value, "low": min(spans[name][0], value), "high": max(spans[name][1], value), "n": n}
        for name, value in values.items()
    ]


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
    edges = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    spans = {name: np.quantile(np.concatenate(parts), edges) for name, parts in found.items()}
    return {name: (float(low), float(high)) for name, (low, high) in spans.items()}
