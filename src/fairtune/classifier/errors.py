"""What `TextClassifier` raises: fairtune's errors that are also the ones which scikit-learn's contract asks for."""

from __future__ import annotations

from sklearn.exceptions import NotFittedError

from fairtune.core.errors import DataError, FairtuneError, ModelError
from fairtune.study.problems import StudyError


class InputError(DataError, ValueError):
    """Texts or labels that cannot be used."""


class SettingsError(StudyError, ValueError):
    """Parameters that cannot be used; lists every problem found."""


class UnusableModelError(ModelError, ValueError):
    """A model, or a folder with a saved classifier, that cannot be found, read or written."""


class FitError(FairtuneError, RuntimeError):
    """Training cannot go on."""


class NotFittedYetError(FairtuneError, NotFittedError):  # type: ignore[misc]
    """`fit` or `load` comes first."""
