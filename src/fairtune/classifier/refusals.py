"""What `TextClassifier` raises: fairtune's errors that are also the ones which scikit-learn's contract asks for."""

from __future__ import annotations

from sklearn.exceptions import NotFittedError

from fairtune.core.errors import DataError, FairtuneError, ModelError
from fairtune.study.problems import StudyError


class InputError(DataError, ValueError):
    """Texts or labels that cannot be used."""


class SettingsError(StudyError, ValueError):
    """Parameters that cannot be used; lists every problem found."""


class UnusableModel(ModelError, ValueError):  # noqa: N818 - read as a sentence where it is raised
    """A model, or a folder with a saved classifier, that cannot be found, read or written."""


class FitFailure(FairtuneError, RuntimeError):  # noqa: N818 - what a run calls RunFailure
    """Training cannot go on."""


class NotFitted(FairtuneError, NotFittedError):  # type: ignore[misc]  # noqa: N818 - scikit-learn's name
    """`fit` or `load` comes first."""
