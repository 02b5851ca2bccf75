"""Workers that do not end when they are asked to, and folders that are gone: the parent always ends, with a sentence."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairtune.core.errors import LedgerError, Stopped
from fairtune.execution.executors import local
from fairtune.execution.executors.local import LocalExecutor
from fairtune.execution.study_run import run_plan
from fairtune.ledger.seals import run_state
from fairtune.monitor.terminal import QuietMonitor
from fairtune.settings.execution import Execution
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from tests.execution.conftest import ToyStudy, perform_here

DEAF = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print('{"type": "ready"}', flush=True)
print('{"type": "child", "pid": %d}' % child.pid, flush=True)
CLOSE
time.sleep(600)
"""


@pytest.fixture
def in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "STOP_SECONDS", 0.5)
    monkeypatch.setattr(local, "END_SECONDS", 2.0)


@pytest.mark.usefixtures("in_seconds")
@pytest.mark.parametrize("close", ["", "import os; os.close(1)"])
def test_a_worker_that_hears_nothing_is_killed_with_what_it_started(
    toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, close: str
) -> None:
    monkeypatch.setattr(local, "WORKER", (sys.executable, "-c", DEAF.replace("CLOSE", close)))
    children: list[int] = []

    class Interrupting(QuietMonitor):
        def update(self, run: str, event: str, values: Any) -> None:  # noqa: ARG002
            if event == "child":
                children.append(values["pid"])
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()

    plan = make_plan(load_study({**toy.source, "arms": {"baseline": {}}, "seeds": 1}))
    with pytest.raises(Stopped):
        run_plan(plan, tmp_path / "runs", Interrupting(), LocalExecutor(Execution(devices=("cpu",)), tmp_path / "logs"))
    (child,) = children
    end = time.monotonic() + 10
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end, "what the worker started is still there"
        time.sleep(0.05)


def test_a_log_folder_that_is_a_file_is_reported(toy: ToyStudy, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    executor = LocalExecutor(Execution(devices=("cpu",)), tmp_path / "logs")
    executor.submit([toy.job("runs")])
    with pytest.raises(LedgerError, match=r"logs: the workers' log cannot be written \(.+\); fix that or use another"):
        next(executor.events())
    executor.stop()


def test_a_run_whose_folder_is_deleted_says_so_and_does_not_come_back(toy: ToyStudy) -> None:
    job = toy.job("runs", evaluate=100)
    looks = 0

    def check_stop() -> None:
        nonlocal looks
        looks += 1
        if looks == 12:
            shutil.rmtree(job.run.path.parent.parent)

    result = perform_here(job, check_stop)
    assert result["status"] == "failed"
    assert (
        result["reason"] == "its folder was deleted or moved away while it was training, so nothing of it is recorded"
    )
    assert not job.run.path.exists()


@pytest.mark.usefixtures("performed_here")
def test_a_study_whose_folder_is_deleted_is_stopped_with_a_sentence(
    toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {**toy.source, "arms": {"baseline": {}, "other": {"lr": 2e-3}}, "seeds": 1}
    plan, began = make_plan(load_study(source)), []

    class Deleting(QuietMonitor):
        def update(self, run: str, event: str, values: Any) -> None:  # noqa: ARG002
            began.append(run)
            shutil.rmtree(tmp_path / "runs")

    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        LedgerError, match=r"runs/toy: the study's folder was deleted or moved away .* run the study again"
    ):
        run_plan(plan, tmp_path / "runs", Deleting())
    assert began == ["baseline/seed-0"], "no further run is trained for nobody"


def test_a_run_is_never_taken_up_from_a_checkpoint_of_other_settings(toy: ToyStudy) -> None:
    other, job = toy.job("other", lr=0.003), toy.job("mine", lr=1e-5)

    def stopping(after: int) -> Any:
        looks = 0

        def check_stop() -> None:
            nonlocal looks
            looks += 1
            if looks == after:
                raise Stopped

        return check_stop

    for one in (other, job):
        with pytest.raises(Stopped):
            perform_here(one, stopping(14))
    shutil.rmtree(job.run.checkpoint)
    shutil.copytree(other.run.checkpoint, job.run.checkpoint)
    result = perform_here(job)
    assert result["status"] == "failed"
    assert "was saved by a run of other settings; move the run's folder away" in result["reason"]
    assert run_state(job.run).status == "failed"


@pytest.mark.usefixtures("performed_here")
@pytest.mark.parametrize("fault", ["missing", "damaged"])
def test_a_run_of_other_settings_never_passes_for_the_plans(toy: ToyStudy, tmp_path: Path, fault: str) -> None:
    source = {**toy.source, "train": {**toy.source["train"], "steps": 2}, "arms": {"baseline": {}}, "seeds": 1}
    plan = make_plan(load_study(source, ["train.lr=0.003"]))
    run_plan(plan, tmp_path / "runs", QuietMonitor())
    file = tmp_path / "runs" / "toy" / "baseline" / "seed-0" / "plan.json"
    file.unlink() if fault == "missing" else file.write_text("{")
    with pytest.raises(LedgerError, match=r"plan\.json .* nothing says what was trained.*Move this folder away"):
        run_plan(make_plan(load_study(source, ["train.lr=1e-5"])), tmp_path / "runs", QuietMonitor())


@pytest.mark.usefixtures("performed_here")
def test_a_damaged_run_is_left_alone_and_the_others_are_run(toy: ToyStudy, tmp_path: Path) -> None:
    source = {**toy.source, "train": {**toy.source["train"], "steps": 2}, "arms": {"baseline": {}}, "seeds": 1}
    run_plan(make_plan(load_study(source)), tmp_path / "runs", QuietMonitor())
    file = tmp_path / "runs" / "toy" / "baseline" / "seed-0" / "predictions.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    outcome = run_plan(make_plan(load_study({**source, "seeds": 2})), tmp_path / "runs", QuietMonitor())
    assert outcome.damaged == {"baseline/seed-0": "predictions.parquet was changed after the run was closed"}
    assert outcome.finished == ["baseline/seed-1"]
    assert file.read_bytes() == bytes(content), "nothing that was recorded is lost"


def test_a_worker_reads_nothing_but_its_jobs() -> None:
    script = "import sys; from fairtune.core.console import own_pipes; own_pipes(); print(repr(input()))"
    done = subprocess.run([sys.executable, "-c", script], input="y\n", capture_output=True, text=True, check=False)
    assert "EOFError" in done.stderr
