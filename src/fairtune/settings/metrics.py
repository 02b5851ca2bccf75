"""Figures of merit, one entry each: what is known of it, and how it follows from predictions or from sums of losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fairtune.settings import score_metrics
from fairtune.settings.score_metrics import ScoredExamples, Weighted

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Formula = Callable[[Floats], Floats]
MANY: Literal["more than two classes"] = "more than two classes"


@dataclass(frozen=True)
class Metric:
    """A figure of merit.

    Args:
        title: as readers know it.
        kind: of the tasks it belongs to.
        shown: a share in percent, a coefficient times 100, or the plain number.
        from_totals: the figure of each draw, from confusion counts [..., true class, predicted class] or from sums of
            documents [..., (nll, tokens, bytes, words, correct)]; None where it takes the scores themselves.
        from_scores: the figure of each draw, from scores and the weights of examples.
        ranks: whether it takes examples of two classes to say anything.
        classes: how many it is for, where not any number.
        instead: the metric for the other number of classes.
        unit: what a plain number counts, where its title does not say.
        of_tokens: whether another tokenizer of the same text changes it.
        from_loss: what it is at a mean loss, where it follows from that alone.
        hub_name: of a model card's front matter, where the hub knows such a metric.
        bounds: that no value can be beyond.
        ratios: whether values are compared by their ratio: differences are taken of logarithms, and margins are shares.
    """

    title: str
    kind: Literal["classify", "language_model"]
    lower_is_better: bool
    shown: Literal["percent", "x100", "plain"]
    from_totals: Formula | None = None
    from_scores: Callable[[ScoredExamples], Weighted] | None = None
    classes: Literal["", "two classes", "more than two classes"] = ""
    instead: str = ""
    ranks: bool = False
    unit: str = ""
    of_tokens: bool = False
    from_loss: Callable[[float], float] | None = None
    hub_name: str | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    ratios: bool = False

    @property
    def factor(self) -> float:
        """From the metric to what is shown."""
        return 1 if self.shown == "plain" else 100

    @property
    def has_line(self) -> bool:
        """Whether it is one of predicted classes, so that it moves with the line at which they are told apart."""
        return self.kind == "classify" and self.from_totals is not None

    @property
    def formula(self) -> Formula:
        """`from_totals`, which must be there."""
        if self.from_totals is None:
            raise TypeError(f"{self.title} follows from scores, not from counts of predicted classes")
        return self.from_totals

    def fits(self, classes: int) -> bool:
        return self.classes in ("", "two classes" if classes == 2 else MANY)

    def of_predictions(self, labels: Counts, predicted: Counts, classes: int) -> float:
        """The figure of labels and predicted classes: bit for bit scikit-learn's, which would take seconds to import."""
        return float(self.formula(_confusion(labels, predicted, classes)))

    def of_scores(self, examples: ScoredExamples, line: float = 0.0) -> float:
        """The figure of labels and scores; NaN where they have none. On `line` see `predicted_classes`."""
        if self.from_scores is None:
            return self.of_predictions(examples.labels, predicted_classes(examples.scores, line), examples.classes)
        return float(self.from_scores(examples)(np.ones((1, len(examples.labels))))[0])


class Sums(NamedTuple):
    """Sums of a language model's scores over documents.

    Args:
        nll: losses in nats, summed over the tokens of the documents' texts.
        tokens: of the texts; EOS and BOS, at their edges, are not scored.
        bytes: of the texts in UTF-8.
        words: of the texts, separated by white space.
        correct: tokens that were the most likely one.
    """

    nll: Floats
    tokens: Floats
    bytes: Floats
    words: Floats
    correct: Floats


def from_sums(figure: Callable[[Sums], Floats]) -> Formula:
    """A formula of sums as one of totals; what is too large for a float is infinite."""

    def compute(totals: Floats) -> Floats:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return figure(Sums(*np.moveaxis(np.asarray(totals, dtype=np.float64), -1, 0)))

    return compute


def _accuracy(counts: Floats) -> Floats:
    return np.asarray(np.trace(counts, axis1=-2, axis2=-1) / counts.sum(axis=(-2, -1)))


def _hits(counts: Floats, wholes: Floats) -> Floats:
    """Right answers of each class as a share of something; 0 of nothing, as in scikit-learn."""
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    return np.asarray(np.divide(hits, wholes, out=np.zeros_like(wholes), where=wholes > 0))


def _f1(counts: Floats) -> Floats:
    return _hits(2 * counts, counts.sum(axis=-1) + counts.sum(axis=-2))


def _precision(counts: Floats) -> Floats:
    return _hits(counts, counts.sum(axis=-2))


def _recall(counts: Floats) -> Floats:
    return _hits(counts, counts.sum(axis=-1))


def _mcc(counts: Floats) -> Floats:
    total = counts.sum(axis=(-2, -1))
    hits = np.trace(counts, axis1=-2, axis2=-1)
    true, predicted = counts.sum(axis=-1), counts.sum(axis=-2)
    above = hits * total - (true * predicted).sum(axis=-1)
    below = np.sqrt((total**2 - (predicted**2).sum(axis=-1)) * (total**2 - (true**2).sum(axis=-1)))
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))


def _counted(title: str, by_class: Formula, number: int | None = None, **facts: Any) -> Metric:
    """A metric of predicted classes: one class's figure, or the mean over them."""

    def compute(counts: Floats) -> Floats:
        found = by_class(counts)
        return np.asarray(found.mean(axis=-1) if number is None else found[..., number])

    classes = {} if number is None else {"classes": "two classes"}
    return Metric(title, "classify", False, "percent", compute, **{**classes, **facts})


def _scored(title: str, figure: Callable[[ScoredExamples], Weighted], lower: bool, shown: Any, **facts: Any) -> Metric:
    return Metric(title, "classify", lower, shown, from_scores=figure, **facts)


def _of_text(title: str, figure: Callable[[Sums], Floats], **facts: Any) -> Metric:
    known: dict[str, Any] = {"lower_is_better": True, "shown": "plain", "bounds": (0.0, math.inf), **facts}
    return Metric(title, "language_model", from_totals=from_sums(figure), **known)


METRICS: dict[str, Metric] = {
    "accuracy": Metric("accuracy", "classify", False, "percent", _accuracy, hub_name="accuracy"),
    "macro_f1": _counted("macro-F1", _f1, hub_name="f1"),
    "f1": _counted("F1", _f1, 1, hub_name="f1", instead="macro_f1"),
    "mcc": Metric("MCC", "classify", False, "x100", _mcc, hub_name="matthews_correlation", bounds=(-1.0, 1.0)),
    "precision": _counted("precision", _precision, 1, hub_name="precision", instead="macro_precision"),
    "recall": _counted("recall", _recall, 1, hub_name="recall", instead="macro_recall"),
    "specificity": _counted("specificity", _recall, 0, instead="macro_recall"),
    "macro_precision": _counted("macro-precision", _precision, classes=MANY, hub_name="precision", instead="precision"),
    "macro_recall": _counted("macro-recall", _recall, classes=MANY, hub_name="recall", instead="recall"),
    "roc_auc": _scored("ROC AUC", score_metrics.roc_auc, False, "x100", ranks=True, hub_name="roc_auc"),
    "average_precision": _scored("average precision", score_metrics.average_precision, False, "x100", ranks=True),
    "log_loss": _scored("log loss", score_metrics.log_loss, True, "plain", unit="nats per example", bounds=(0.0, math.inf)),
    "brier": _scored("Brier score", score_metrics.brier, True, "x100", hub_name="brier_score"),
    "calibration_error": _scored("calibration error", score_metrics.calibration_error, True, "percent"),
    "perplexity": _of_text("perplexity", lambda sums: np.exp(sums.nll / sums.tokens), unit="per token", of_tokens=True,
                           from_loss=math.exp, bounds=(1.0, math.inf), ratios=True),
    "word_perplexity": _of_text("word perplexity", lambda sums: np.exp(sums.nll / sums.words), bounds=(1.0, math.inf), ratios=True),
    "bits_per_byte": _of_text("bits per byte", lambda sums: sums.nll / np.log(2) / sums.bytes),
    "loss": _of_text("loss", lambda sums: sums.nll / sums.tokens, unit="nats per token", of_tokens=True, from_loss=float),
    "token_accuracy": _of_text("token accuracy", lambda sums: sums.correct / sums.tokens, of_tokens=True, bounds=(0.0, 1.0),
                               lower_is_better=False, shown="percent"),
}  # fmt: skip
"""In the order in which they are shown; the first of each kind is the usual one. A new metric is one entry here."""


def title_of(metric: str) -> str:
    """A metric as readers know it; one that is not known here, as in the ledger of another version, by its own name."""
    return METRICS[metric].title if metric in METRICS else metric


def metrics_of_kind(kind: str) -> list[str]:
    return [name for name, metric in METRICS.items() if metric.kind == kind]


def metrics_of_classes(classes: int) -> list[str]:
    """Every metric of classifiers for so many classes; those for two classes only come last."""
    names = [name for name in metrics_of_kind("classify") if METRICS[name].fits(classes)]
    return sorted(names, key=lambda name: METRICS[name].classes == "two classes")


def predicted_classes(scores: npt.NDArray[np.floating], line: float = 0.0) -> npt.NDArray[np.int64]:
    """The class with the highest score; the lowest class number on ties.

    Args:
        line: of two classes, by how much the second must be above the first to be said; 0 is a probability of one half.
    """
    if line:
        return np.asarray(scores[:, 1].astype(np.float64) - scores[:, 0] > line, dtype=np.int64)
    return np.asarray(scores.argmax(axis=1), dtype=np.int64)


def _confusion(labels: Counts, predicted: Counts, classes: int) -> Floats:
    counts = np.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)
    return counts.astype(np.float64)


def classification_metrics(
    labels: npt.NDArray[np.int64], scores: npt.NDArray[np.floating], line: float = 0.0
) -> dict[str, float]:
    """Every metric of classifiers that predictions have; what takes two classes is left out where there is one."""
    examples = ScoredExamples(np.asarray(labels), np.asarray(scores))
    told_apart = len(examples.present) > 1
    names = [name for name in metrics_of_classes(examples.classes) if told_apart or not METRICS[name].ranks]
    counts = _confusion(examples.labels, predicted_classes(examples.scores, line), examples.classes)
    return {
        name: float(METRICS[name].formula(counts))
        if METRICS[name].from_scores is None
        else METRICS[name].of_scores(examples)
        for name in names
    }


def text_metrics(nll: Floats, tokens: Counts, bytes: Counts, words: Counts, correct: Counts) -> dict[str, float]:
    """Every metric of language models from sums by document (see `Sums`), the loss first."""
    totals = np.array([np.sum(column, dtype=np.float64) for column in (nll, tokens, bytes, words, correct)])
    names = sorted(metrics_of_kind("language_model"), key=lambda name: name != "loss")
    return {name: float(METRICS[name].formula(totals)) for name in names}
