"""`fairtune dash` hands over what it was given, and Ctrl-C is how one ends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_status_verb import make_study
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.monitor.dash import server


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What a server that is stopped at once was started with."""
    found: list[tuple[Any, ...]] = []

    def serve(*given: Any) -> None:
        found.append(given[:-1])
        given[-1]("it is at http://127.0.0.1/")
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "serve_dashboard", serve)
    return found


def test_it_is_for_this_machine_unless_more_is_asked_for(served: list[tuple[Any, ...]]) -> None:
    done = CliRunner().invoke(app, ["dash", "--runs", "r"])
    assert (done.exit_code, done.output) == (0, "it is at http://127.0.0.1/\n"), "and Ctrl-C ends it quietly"
    assert served == [(Path("r"), None, "127.0.0.1", 8321, None, False, ())]


def test_all_that_is_given_arrives(
    served: list[tuple[Any, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_study(tmp_path, "toy", "accuracy", [0.5])
    monkeypatch.setenv("FAIRTUNE_DASH_TOKEN", "a secret that is long")
    words = ["dash", str(tmp_path / "toy"), "--host", "0.0.0.0", "--port", "0", "--name", "a", "--name", "b", "--open"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert served == [(tmp_path, "toy", "0.0.0.0", 0, "a secret that is long", True, ("a", "b"))]


@pytest.mark.parametrize("words", [["--port", "70000"], ["nothing"], ["--port", "x"]])
def test_what_is_wrong_is_told_before_anything_listens(
    words: list[str], served: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, ["dash", *words, "--runs", str(tmp_path)])
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert served == []
