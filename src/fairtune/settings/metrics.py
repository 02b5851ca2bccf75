"""Figures of merit: what is known of each, and how it follows from predictions or from sums of losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MetricFacts:
    """What is known of a metric.

    Args:
        title: as readers know it.
        kind: of the tasks it belongs to.
        shown: a share in percent, a coefficient times 100, or the plain number.
    """

    title: str
    kind: Literal["classify", "language_model"]
    lower_is_better: bool
    shown: Literal["percent", "x100", "plain"]


METRICS = {
    "accuracy": MetricFacts("accuracy", "classify", lower_is_better=False, shown="percent"),
    "macro_f1": MetricFacts("macro-F1", "classify", lower_is_better=False, shown="percent"),
    "f1": MetricFacts("F1", "classify", lower_is_better=False, shown="percent"),
    "mcc": MetricFacts("MCC", "classify", lower_is_better=False, shown="x100"),
    "perplexity": MetricFacts("perplexity", "language_model", lower_is_better=True, shown="plain"),
    "word_perplexity": MetricFacts("word perplexity", "language_model", lower_is_better=True, shown="plain"),
    "bits_per_byte": MetricFacts("bits per byte", "language_model", lower_is_better=True, shown="plain"),
    "loss": MetricFacts("loss", "language_model", lower_is_better=True, shown="plain"),
    "token_accuracy": MetricFacts("token accuracy", "language_model", lower_is_better=False, shown="percent"),
}
"""In the order in which they are shown; the first of each kind is the usual one."""
TITLES = {name: facts.title for name, facts in METRICS.items()}


def predicted_classes(scores: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """The class with the highest score; the lowest class number on ties."""
    return np.asarray(scores.argmax(axis=1), dtype=np.int64)


def classification_metrics(labels: npt.NDArray[np.int64], scores: npt.NDArray[np.floating]) -> dict[str, float]:
    """Accuracy, macro-F1 and MCC of predictions by scikit-learn; F1 of class 1 where there are two classes."""
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef  # slow to import, and not for the facts

    predicted = predicted_classes(scores)
    classes = np.arange(np.asarray(scores).shape[1])
    figures = {
        "accuracy": accuracy_score(labels, predicted),
        "macro_f1": f1_score(labels, predicted, labels=classes, average="macro", zero_division=0),
        "mcc": matthews_corrcoef(labels, predicted),
    }
    if len(classes) == 2:
        figures["f1"] = f1_score(labels, predicted, pos_label=1, average="binary", zero_division=0)
    return {name: float(value) for name, value in figures.items()}


def text_metrics(nll: Floats, tokens: Counts, bytes: Counts, words: Counts, correct: Counts) -> dict[str, float]:
    """Figures of a language model from sums by document; a perplexity too large for a float is infinite.

    Args:
        nll: losses in nats, summed over the tokens of the document's text.
        tokens: of the text; EOS and BOS, at its edges, are not scored.
        bytes: of the text in UTF-8.
        words: of the text, separated by white space.
        correct: tokens that were the most likely one.
    """
    totals = np.array([np.sum(column, dtype=np.float64) for column in (nll, tokens, bytes, words, correct)])
    return {name: float(value) for name, value in text_figures(totals).items()}


def text_figures(totals: Floats) -> dict[str, Floats]:
    """The same from totals [..., (nll, tokens, bytes, words, correct)], such as those of resampled documents."""
    nll, tokens, size, words, correct = np.moveaxis(np.asarray(totals, dtype=np.float64), -1, 0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        loss = nll / tokens
        return {
            "loss": loss,
            "perplexity": np.exp(loss),
            "word_perplexity": np.exp(nll / words),
            "bits_per_byte": nll / np.log(2) / size,
            "token_accuracy": correct / tokens,
        }
