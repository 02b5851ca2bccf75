"""The package in examples/plugin keeps the promises that our own methods and tasks keep, by its own tests."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairtune.tasks
from fairtune.testing import check_idle, check_method, check_task, make_toy

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE)


def test_its_method_resumes_and_composes(tmp_path: Path) -> None:
    study = make_toy(tmp_path, plugins=["fairtune_example.lookahead"])
    check_method(study, "lookahead", idle={"keep": 1})


def test_a_method_that_is_not_idle_is_found_out(tmp_path: Path) -> None:
    study = make_toy(tmp_path, plugins=[EXAMPLE / "fairtune_example" / "lookahead.py"])
    with pytest.raises(AssertionError, match="it is idle, and still changes what is trained"):
        check_idle(study, [{"lookahead": {"keep": 0.5}}])


@pytest.mark.skipif(not hasattr(fairtune.tasks, "register_task"), reason="tasks cannot be registered yet")
def test_its_task_is_trained_and_resumed(tmp_path: Path) -> None:
    check_task(make_toy(tmp_path, plugins=["fairtune_example.weather"], task="weather"))
