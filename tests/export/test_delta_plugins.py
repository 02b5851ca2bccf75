"""Deltas of runs whose methods are a user's own: exporting knows the file that the plan names, restoring must be given it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairtune import export_delta, restore_delta
from fairtune.cli.app import app
from fairtune.core.errors import LedgerError
from fairtune.core.plugins import PluginError
from fairtune.ledger.folders import RunFolder
from tests.conftest import forget_plugins
from tests.execution.made_runs import make_run
from tests.made_plugin import ADDS

pytestmark = pytest.mark.usefixtures("forgotten_plugins")


@pytest.fixture
def run(tmp_path: Path, tiny_model: Path, tiny_task: Any, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """With a method of `mine.py`, of which nothing is known any more."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(ADDS.format(name="nothing"))
    made = make_run(tmp_path / "runs", tiny_model, tiny_task, ["nothing"], plugins=["mine"])
    forget_plugins()
    return made


def test_it_is_exported_and_restored(run: RunFolder, tmp_path: Path, tiny_model: Path) -> None:
    delta, given = tmp_path / "delta", ["--model", str(tiny_model)]
    answer = CliRunner().invoke(app, ["export", str(run.path), "--delta", "--out", str(delta)])
    assert answer.exit_code == 0, answer.output
    assert f"--out FOLDER --plugin {tmp_path / 'mine.py'}" in " ".join(answer.output.split()), "the way back, whole"
    forget_plugins()
    with pytest.raises(LedgerError, match=r"unknown method\. The run had the plug-ins 'mine': .* with --plugin\."):
        restore_delta(delta, tmp_path / "model")
    words = ["restore", str(delta), "--out", str(tmp_path / "model"), *given, "--plugin", str(tmp_path / "mine.py")]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    assert "each bit-equal to the run's" in " ".join(answer.output.split())


def test_a_file_that_is_another_now_is_refused(run: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ADDS.format(name="nothing") + "# changed\n")
    with pytest.raises(PluginError, match="plug-in mine changed since the study was planned"):
        export_delta(run.path, tmp_path / "delta")
    assert not (tmp_path / "delta").exists()


def test_a_file_to_restore_with_that_is_not_there_is_refused(run: RunFolder, tmp_path: Path) -> None:
    export_delta(run.path, tmp_path / "delta")
    with pytest.raises(PluginError, match=r"plug-in 'other': there is no other\.py"):
        restore_delta(tmp_path / "delta", tmp_path / "model", plugins=["other.py"])
