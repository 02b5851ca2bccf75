"""`fairtune run --on` and `--dry-run`: where runs are performed, and what would be."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fairtune.api import time_on_a_node
from fairtune.cli.app import app
from fairtune.execution.executors.base import FACTORIES
from fairtune.execution.executors.remote import ask_what_to_do


@pytest.fixture
def study(tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "toy.yaml"
    source = {
        "study": "toy", "task": tiny_task.as_study(), "model": str(tiny_model), "seeds": 3,
        "arms": {"baseline": {}, "focal": {"methods": ["focal"]}}, "compare": {"to": "baseline"},
        "train": {"steps": 1, "batch_size": 4, "max_length": 16}, "execution": {"slurm": {"max_parallel": 2}},
    }  # fmt: skip
    file.write_text(yaml.safe_dump(source, sort_keys=False))
    return file


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_dry_run_prints_the_script_and_does_nothing(study: Path, tmp_path: Path) -> None:
    done = call("run", study, "--on", "slurm", "--dry-run", "--set", "execution.slurm.partition=gpu")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("#!/bin/sh\n#SBATCH ")
    assert "#SBATCH --array=0-2%2\n" in done.stdout
    assert "#SBATCH --partition=gpu\n" in done.stdout
    assert f"fairtune worker {(tmp_path / 'runs' / 'toy' / 'jobs' / '1').resolve()}/" in done.stdout
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_here_prints_the_order_of_runs(study: Path, tmp_path: Path) -> None:
    done = call("run", study, "--dry-run", "--arms", "baseline")
    assert done.stdout.split() == ["baseline/seed-0", "baseline/seed-1", "baseline/seed-2"]
    assert not (tmp_path / "runs").exists()


def test_a_place_that_is_none_is_told_with_those_there_are(study: Path) -> None:
    done = call("run", study, "--on", "slrum")
    assert done.exit_code == 2
    assert "slrum" in done.stderr
    assert "Did you mean 'slurm'?" in done.stderr


def test_without_slurm_nothing_is_begun(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("run", study, "--on", "slurm")
    assert done.exit_code == 2
    assert "no Slurm here: sbatch" in done.stderr
    assert not (tmp_path / "runs" / "toy" / "jobs").exists()


def test_every_place_has_a_factory_and_timing_elsewhere_is_explained() -> None:
    assert set(FACTORIES) == {"local", "slurm", "ray"}
    assert time_on_a_node("slurm", "a.yaml").endswith("on a node, run: srun fairtune time a.yaml")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "wish"),
    [("cancel\n", "cancel"), ("c\n", "cancel"), ("\n", "leave"), ("", "leave"), ("LEAVE\n", "leave")],
)
def test_ctrl_c_asks_on_a_terminal(monkeypatch: pytest.MonkeyPatch, typed: str, wish: str) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", shown)
    assert ask_what_to_do("Slurm") == wish
    assert "Leave the jobs on Slurm, where they go on, or cancel them? [leave/cancel]" in shown.getvalue()
    monkeypatch.setattr(sys, "stdin", io.StringIO("cancel\n"))
    assert ask_what_to_do("Slurm") == "leave", "nobody is there to be asked"
