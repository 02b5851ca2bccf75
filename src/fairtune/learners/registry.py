"""The simple learners by name: fitting one, and finding again one that was kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtune.core.errors import ModelError
from fairtune.learners.base import CheckStop, ChosenSetting, FittedLearner, LabelledInputs, read_kept
from fairtune.learners.knn_probe import NearestNeighbours
from fairtune.learners.linear_probe import LinearProbe, SetFitHead
from fairtune.learners.majority import MajorityClass
from fairtune.learners.tfidf import NaiveBayes, Tfidf

KINDS: dict[str, type[FittedLearner]] = {
    kind.name: kind for kind in (MajorityClass, Tfidf, NaiveBayes, LinearProbe, NearestNeighbours, SetFitHead)
}


def fit_learner(
    name: str,
    train: LabelledInputs,
    validation: LabelledInputs,
    classes: int,
    metric: str,
    check_stop: CheckStop = lambda: None,
) -> FittedLearner:
    """Fit a learner on training examples; what it can be set to is chosen on validation, by the metric.

    Args:
        name: of a learner that is not trained step by step.
        train, validation: their inputs are texts, or an encoder's features (`encoder_features`) if the learner needs one.
        classes: how many there are.
    """
    return KINDS[name].fit(train, validation, classes, metric, check_stop)


def load_learner(folder: Path) -> tuple[FittedLearner, dict[str, Any]]:
    """A learner that was kept, and all that was kept with it.

    Raises:
        ModelError: there is none, or it is damaged.
    """
    facts, arrays = read_kept(folder)
    try:
        kind = KINDS[facts["learner"]]
        choice = ChosenSetting(dict(facts["chosen"]))
        return kind.restore(int(facts["classes"]), choice, facts["facts"], arrays), facts
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder}: the learner in it cannot be read ({type(error).__name__}: {error}).") from None
