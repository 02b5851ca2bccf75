"""`--quick`: of all tests, those that neither import torch nor draw nor start a process, decided by what they do.

There is no list to keep: the moment a test, or its file, asks for one of these, it is skipped. Those that are marked as slow,
or as in need of a browser or a cluster, are not begun: many start processes from threads and event loops, where a skip is no skip.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib.abc import MetaPathFinder
from typing import Any, NoReturn

import pytest

HEAVY = ("torch", "transformers", "matplotlib", "sklearn", "datasets", "tensorboard", "mlflow", "wandb", "trackio")


class _Refuse(MetaPathFinder):
    """Skips whoever imports one of the heavy libraries."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name in HEAVY:
            pytest.skip(f"imports {name}", allow_module_level=True)


def _refuse_process(*_: Any, **__: Any) -> NoReturn:
    pytest.skip("starts a process")


def be_quick() -> None:
    """From now on."""
    platform.platform()  # remembered from here on; it asks a process, and pytest's workers ask it
    sys.meta_path.insert(0, _Refuse())
    subprocess.Popen.__init__ = _refuse_process  # type: ignore[method-assign, assignment]


def skip_marked(items: list[pytest.Item]) -> None:
    """Begin no test whose mark says that it is not quick."""
    for item in items:
        if any(item.get_closest_marker(name) for name in ("slow", "browser", "cluster")):
            item.add_marker(pytest.mark.skip("is not quick"))
