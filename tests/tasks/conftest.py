"""What tests of the hub share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def hub_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder for the hub's libraries: the same for every test, as they read its name only when they are imported."""
    home = tmp_path_factory.getbasetemp() / "hub-home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    return home
