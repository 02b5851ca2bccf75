"""Runs of a toy study; the processes that are killed are forked from one that has imported all they need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairtune.testing import runs
from fairtune.testing.runs import ToyStudy, digests, perform_apart, perform_here, toy_source
from tests.warm import WarmProcess

__all__ = ["ToyStudy", "digests", "perform_apart", "perform_here", "toy", "toy_source"]
runs.start_process = WarmProcess  # a session's tests share what one process has imported


@pytest.fixture
def toy(tiny_model: Path, tiny_task: Any, tmp_path: Path) -> ToyStudy:
    """A study of the tiny model on the toy task."""
    return ToyStudy(toy_source(tiny_model, tiny_task), tmp_path)
