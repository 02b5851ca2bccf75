"""Whole studies with real workers: what goes wrong in one run is recorded, and the others go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.ledger.events import all_events
from tests.execution.conftest import ToyStudy, digests, perform_apart
from tests.undrawn import UNDRAWN
from tests.warm import WarmPopen, started_by

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.Popen[str]]
Answer = Callable[..., Result]


@pytest.fixture
def study_file(toy: ToyStudy, tmp_path: Path) -> Path:
    """Three arms; `wild` has a learning rate that ends in NaN."""
    source: dict[str, Any] = {
        **toy.source,
        "train": toy.source["train"] | {"epochs": 1},
        "seeds": 1,
        "arms": {"baseline": {}, "wild": {"lr": 1e30}, "frozen": {"methods": [{"orthogonal_qk": {"init": "keep"}}]}},
    }
    file = tmp_path / "toy.yaml"
    file.write_text(yaml.safe_dump(source, sort_keys=False))
    return file


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Start the command line in the temporary folder, in a process of its own whose workers are such processes too."""

    def start(*words: str, **options: Any) -> subprocess.Popen[str]:
        return WarmPopen(
            [sys.executable, "-m", "fairtune", *words],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, UNDRAWN: "1"},
            **options,
        )

    return start


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """The command line in this process, for what answers without a worker."""
    monkeypatch.chdir(tmp_path)

    def ask(*words: str) -> Result:
        return CliRunner().invoke(app, words)

    return ask


def wait_for(what: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def steps_of(run: Path) -> int:
    return sum(event["event"] == "step" for event in all_events(run / "events.jsonl"))


def test_a_run_that_fails_is_recorded_and_the_others_go_on(
    study_file: Path, command: Command, answer: Answer, tmp_path: Path
) -> None:
    first = command("run", str(study_file), "--json")
    out, err = first.communicate(timeout=280)
    assert first.returncode == 1, err
    home = tmp_path / "runs" / "toy"
    failed = json.loads((home / "wild" / "seed-0" / "result.json").read_text())
    assert failed["status"] == "failed"
    assert "step" in failed["reason"]
    assert "loss is" in failed["reason"] or "norm is" in failed["reason"]
    for arm in ("baseline", "frozen"):
        assert json.loads((home / arm / "seed-0" / "result.json").read_text())["status"] == "finished"
    assert "wild/seed-0 failed" in err
    assert json.loads(out)
    assert "Traceback" not in out + err

    finished = digests(home / "baseline" / "seed-0")
    recorded = (home / "baseline" / "seed-0" / "events.jsonl").read_bytes()
    status = answer("status", "toy", "--json")
    states = {(run["arm"], run["seed"]): run["status"] for run in json.loads(status.stdout)["runs"]}
    assert states[("wild", 0)] == "failed"
    assert states[("frozen", 0)] == "finished"

    again = command("run", str(study_file), "--set", "arms.wild.lr=1e-3")
    _, err = again.communicate(timeout=280)
    assert again.returncode == 0, "a run that failed is replaced when its settings are fixed"
    assert digests(home / "baseline" / "seed-0") == finished
    assert (home / "baseline" / "seed-0" / "events.jsonl").read_bytes() == recorded, "a finished run is not run again"
    back = answer("run", str(study_file))
    assert back.exit_code == 2, "the folder of a finished run belongs to another plan"
    assert "train.lr was 0.001, is 1e+30" in back.output


def test_a_second_process_is_refused_and_a_killed_worker_fails_only_its_run(
    study_file: Path, command: Command, answer: Answer, tmp_path: Path
) -> None:
    words = ["run", str(study_file), "--set", "train.epochs=60", "--set", "arms.wild.lr=1e-4"]
    process = command(*words)
    home = tmp_path / "runs" / "toy"
    wait_for(lambda: steps_of(home / "baseline" / "seed-0") > 3)
    second = answer(*words)
    assert second.exit_code == 2
    assert "another process" in second.output

    (worker,) = started_by(process)
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: steps_of(home / "wild" / "seed-0") > 3)
    failed = json.loads((home / "baseline" / "seed-0" / "result.json").read_text())
    assert failed["status"] == "failed"
    assert "killed" in failed["reason"]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with: fairtune run" in err
    assert steps_of(home / "baseline" / "seed-0") > 3, "what the killed worker recorded is still there"


def test_interrupted_ended_and_killed_outright_a_study_goes_on_to_the_same_bits(
    study_file: Path, toy: ToyStudy, command: Command, answer: Answer, tmp_path: Path
) -> None:
    train = {"epochs": 10, "evaluate": 65}
    changes = ["arms={baseline: {}}", *(f"train.{name}={value}" for name, value in train.items())]
    words = ["run", str(study_file), *(word for change in changes for word in ("--set", change))]
    run = tmp_path / "runs" / "toy" / "baseline" / "seed-0"
    for number in (signal.SIGINT, signal.SIGTERM):
        before = steps_of(run) if run.exists() else 0
        process = command(*words)
        wait_for(lambda before=before: run.exists() and steps_of(run) > before + 5)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Traceback" not in err
        assert "fairtune: stopping: runs under way are saving their state. Press Ctrl-C again" in " ".join(err.split())
        assert err.index("stopping") < err.index("fairtune: stopped."), "it is acknowledged before it is done"
        assert json.loads(answer("status", "toy", "--json").stdout)["runs"][0]["status"] == "interrupted"
    done = steps_of(run)
    process = command(*words)
    wait_for(lambda: steps_of(run) > done + 5)
    process.kill()
    process.communicate(timeout=60)

    finish = command(*words)
    _, err = finish.communicate(timeout=200)
    assert finish.returncode == 0, err
    assert steps_of(run) == 10 * 13, "no step that was done before is done again"
    assert json.loads((run / "result.json").read_text())["steps"] == 10 * 13
    whole = toy.job("whole", **train)
    assert perform_apart(whole) == 0
    assert digests(run) == digests(whole.run.path)


def test_a_full_disk_stops_the_study_with_a_clear_message(study_file: Path, command: Command, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(small)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        process = command("run", str(study_file), "--runs", str(small / "runs"))
        _, err = process.communicate(timeout=120)
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert process.returncode == 1
    assert "disk is full" in err
    assert "Traceback" not in err


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a place that even root cannot write")
def test_a_runs_folder_that_cannot_be_written_is_refused_before_any_work(study_file: Path, answer: Answer) -> None:
    refused = answer("run", str(study_file), "--runs", "/proc/runs")
    assert refused.exit_code == 2
    assert "cannot be written" in refused.output
    assert "--runs" in refused.output
