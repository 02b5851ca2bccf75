"""The head of SetFit: logistic regression on what an encoder makes of a text that was trained on pairs."""

from __future__ import annotations

from fairtune.learners.base import CheckStop, LabelledInputs
from fairtune.learners.linear_probe import LinearProbe, fit_linear_probe


class SetFitHead(LinearProbe):
    """The head of a linear probe, on an encoder of its own, which is kept beside it."""

    name = "setfit"


def fit_setfit_head(
    train: LabelledInputs, validation: LabelledInputs, classes: int, metric: str, check_stop: CheckStop
) -> SetFitHead:
    """Fit the head as that of a linear probe is fitted, its strength chosen on validation."""
    found = fit_linear_probe(train, validation, classes, metric, check_stop)
    return SetFitHead(classes, found.choice, found.head, found.notes)
