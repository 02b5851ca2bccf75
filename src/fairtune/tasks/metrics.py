"""Figures of merit for classification, by scikit-learn, from labels and scores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

TITLES = {"accuracy": "accuracy", "macro_f1": "macro-F1", "f1": "F1", "mcc": "MCC"}


def predicted_classes(scores: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """The class with the highest score; the lowest class number on ties."""
    return np.asarray(scores.argmax(axis=1), dtype=np.int64)


def classification_metrics(labels: npt.NDArray[np.int64], scores: npt.NDArray[np.floating]) -> dict[str, float]:
    """Accuracy, macro-F1 and MCC of predictions; F1 of class 1 where there are two classes."""
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
