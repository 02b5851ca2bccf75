"""A small model, and a classifier that was fitted once for tests that only look at it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fairtune import TextClassifier


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.classifier.made_examples import make_model

    return make_model(tmp_path_factory.mktemp("models") / "small-bert")


@pytest.fixture(scope="session")
def fitted(small_model: Path) -> TextClassifier:
    """Fitted on 60 texts, calibrated; tests do not change it."""
    from tests.classifier.made_examples import make_texts, quick

    return quick(small_model, calibrate=True).fit(*make_texts(60))
