"""The package in examples/plugin keeps the promises that our own methods and tasks keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtune.testing import (
    ToyStudy,
    check_composition,
    check_idle,
    check_resume,
    check_state,
    check_task,
    make_toy,
    toy_use,
)
from fairtune.testing.checks import check_together
from tests.execution import conftest  # noqa: F401 - warms the processes that are killed

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
pytestmark = pytest.mark.usefixtures("forgotten_plugins")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToyStudy:
    monkeypatch.syspath_prepend(EXAMPLE)
    return make_toy(tmp_path, plugins=["fairtune_example.lookahead"])


def test_its_method_is_killed_and_resumed(study: ToyStudy) -> None:
    check_state(study, [toy_use("lookahead")])
    check_resume(study, [toy_use("lookahead")])


def test_its_method_can_be_idle(study: ToyStudy) -> None:
    check_idle(study, [{"lookahead": {"keep": 1}}])
    with pytest.raises(AssertionError, match="it is idle, and still changes what is trained"):
        check_idle(study, [{"lookahead": {"keep": 0.5}}])


def test_its_method_composes_with_all_others(study: ToyStudy) -> None:
    check_composition(study, "lookahead")


def test_its_task_is_trained_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE)
    check_task(make_toy(tmp_path, plugins=["fairtune_example.weather"], task="weather"))


def test_the_method_of_the_docs_trains(tmp_path: Path) -> None:
    documented = (EXAMPLE.parents[1] / "docs" / "plugins.md").read_text(encoding="utf-8")
    source = documented.split("```python\n")[1].split("```")[0]
    assert len(source.splitlines()) <= 40
    (tmp_path / "confidence_penalty.py").write_text(source, encoding="utf-8")
    toy = make_toy(tmp_path, plugins=[tmp_path / "confidence_penalty.py"])
    check_together(toy, [{"confidence_penalty": {"weight": 0.2}}, "focal"])
    check_idle(toy, [{"confidence_penalty": {"weight": 0}}])
