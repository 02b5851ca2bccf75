"""Figures are drawn once: found again by what they show, drawn again when that changes or the cache is no good."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.made_ledger import MadeLedger, usual_ledger
from tests.sealed import close_again

from fairtune.report.figures import kept
from fairtune.report.figures.kept import content_sum, kept_figure
from fairtune.report.sections.scores import figure
from fairtune.report.writer import write_report


@dataclass(frozen=True)
class Shown:
    name: str
    points: Any


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was drawn, by a drawer that tests can watch."""
    calls: list[tuple[Any, ...]] = []

    def draw(*given: Any) -> str | None:
        calls.append(given)
        return f"<svg>{len(calls)}</svg>" if given[0] != "nothing" else None

    monkeypatch.setattr(figure, "watched", draw, raising=False)
    return calls


WATCHED = "scores.figure:watched"


@pytest.mark.usefixtures("own_cache")
def test_the_same_is_drawn_once_and_anything_else_again(drawn: list[Any]) -> None:
    shown = Shown("a", np.arange(3.0))
    assert kept_figure(WATCHED, shown, 1) == kept_figure(WATCHED, Shown("a", np.arange(3.0)), 1) == "<svg>1</svg>"
    others = (
        replace(shown, name="b"), replace(shown, points=np.arange(3)), replace(shown, points=np.arange(3.0)[::-1]),
        replace(shown, points=np.arange(3.0)[:, None]), replace(shown, points=(0.0, 1.0, 2.0)),
    )  # fmt: skip
    for other in others:
        kept_figure(WATCHED, other, 1)
    kept_figure(WATCHED, shown, 2)
    assert len(drawn) == 2 + len(others)


@pytest.mark.usefixtures("own_cache")
def test_that_there_is_no_figure_is_kept_too(drawn: list[Any]) -> None:
    assert kept_figure(WATCHED, "nothing") is None
    assert kept_figure(WATCHED, "nothing") is None
    assert len(drawn) == 1


@pytest.mark.usefixtures("own_cache")
def test_other_code_or_libraries_draw_again(drawn: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kept_figure(WATCHED, 1)
    monkeypatch.setattr(kept, "_code", lambda: "another version")
    kept_figure(WATCHED, 1)
    assert len(drawn) == 2


def test_the_code_is_known_by_its_files_and_the_versions_of_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept._code.__wrapped__()
    assert kept._code.__wrapped__() == before
    monkeypatch.setattr(kept, "_version", lambda name: f"newer {name}")
    assert kept._code.__wrapped__() != before


def test_without_a_cache_everything_is_drawn(tmp_path: Path, drawn: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "file"))
    assert kept_figure(WATCHED, 1) == "<svg>1</svg>"
    assert kept_figure(WATCHED, 1) == "<svg>2</svg>"
    assert len(drawn) == 2


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no content"):
        content_sum([object()])
    with pytest.raises(TypeError, match="ndarray has no content"):
        content_sum(np.array([object()]))


def test_a_report_of_an_unchanged_study_is_the_same_and_a_changed_one_shows_it(tmp_path: Path, own_cache: Path) -> None:
    ledger = usual_ledger(tmp_path / "runs")
    first, figures = _page(ledger), set((own_cache / "figures").iterdir())
    assert len(figures) >= 3
    assert _page(ledger) == first
    assert set((own_cache / "figures").iterdir()) == figures
    ledger.predict("focal", 0, 300)
    close_again(ledger.folder("focal", 0), metrics={"test": {"accuracy": 300 / 400}})
    second = _page(ledger)
    scores = re.compile(r'<svg class="strip.*?</svg>', re.DOTALL)
    assert scores.findall(second) != scores.findall(first)


def _page(ledger: MadeLedger) -> str:
    return write_report(ledger.results())["html"].read_text(encoding="utf-8")
