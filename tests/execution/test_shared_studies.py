"""A study whose runs two processes share: killed, it goes on to the same bits; what cannot be shared is refused when it is read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairtune.core.errors import FairtuneError
from fairtune.execution.executors.local import LocalExecutor
from fairtune.execution.job import make_job
from fairtune.execution.study_run import run_plan
from fairtune.ledger.events import all_events
from fairtune.monitor.terminal import QuietMonitor
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from tests import warm
from tests.execution.conftest import ToyStudy, digests
from tests.execution.shared_runs import Shared, perform_together


@pytest.mark.parametrize(
    ("execution", "arm", "problem"),
    [
        ({"devices_per_run": 1, "sharding": "full"}, {}, "execution.sharding: full divides a model among the devices of a run"),
        ({}, {"methods": [{"fgm": {"target": "table"}}]}, "arms.arm.methods[0]: 'fgm' cannot be shared by 2 devices: `target:"),
        ({}, {"methods": [{"augment": {"function": "json:loads"}}]}, "arms.arm.methods[0]: 'augment' cannot be shared by 2"),
        ({}, {"batch_size": 1}, "arms.arm.batch_size: 1 cannot be divided among 2 devices"),
        ({"sharding": "full"}, {"methods": ["ema"]}, "arms.arm.methods[0]: 'ema' cannot train divided weights: it keeps"),
        ({"sharding": "full"}, {"methods": ["bpsom"]}, "arms.arm.methods[0]: 'bpsom' cannot train divided weights"),
        ({"sharding": "full"}, {"methods": ["focal", "pgd"]}, "arms.arm.methods[1]: 'pgd' cannot train divided weights"),
        ({"sharding": "full"}, {"precision": "fp16"}, "arms.arm.precision: fp16 scales losses"),
        ({"sharding": "full"}, {"preset": "setfit"}, "arms.arm.learner: 'setfit' fits a head on the whole model"),
    ],
)  # fmt: skip
def test_what_cannot_be_shared_or_divided_is_refused_when_the_study_is_read(
    toy: ToyStudy, execution: dict[str, Any], arm: dict[str, Any], problem: str
) -> None:
    both = {**toy.source["execution"], "devices_per_run": 2, **execution}
    with pytest.raises(FairtuneError) as refused:
        load_study({**toy.source, "execution": both, "arms": {"baseline": {}, "arm": arm}})
    assert problem in str(refused.value)


def test_simple_baselines_and_most_methods_are_not_refused(toy: ToyStudy) -> None:
    execution = {**toy.source["execution"], "devices_per_run": 2, "sharding": "full"}
    arms = {
        "baseline": {},
        "majority": {},
        "idle": {"methods": [{"fgm": {"epsilon": 0}}, {"ema": {"decay": 0}}, "focal"]},
    }
    assert load_study({**toy.source, "execution": execution, "arms": arms}).execution.sharding == "full"


class Killing(QuietMonitor):
    """Kills a process once the run has come so far, and looks at what the run's processes are.

    Args:
        whom: a rank, or None for the worker that started them.
    """

    def __init__(self, folder: Path, executor: LocalExecutor, whom: int | None, step: int) -> None:
        super().__init__()
        self.folder, self.executor, self.whom, self.step = folder, executor, whom, step
        self.pids: list[int] = []
        self.listening: set[str] = set()

    def update(self, run: str, event: str, values: Any) -> None:
        super().update(run, event, values)
        if event == "progress" and not self.pids and values.get("phase") == "train" and values["step"] >= self.step:
            files = sorted(self.folder.glob("fairtune-run-*/pid-*.json"))
            self.pids = [json.loads(file.read_text()) for file in files]
            for pid in self.pids:
                sockets = psutil.Process(pid).net_connections("inet")
                self.listening |= {one.laddr.ip for one in sockets if one.status == psutil.CONN_LISTEN}
            worker = self.executor._workers[0].process.pid
            os.kill(worker if self.whom is None else self.pids[self.whom], signal.SIGKILL)


def test_a_study_goes_on_to_the_same_bits_after_a_process_and_then_the_worker_were_killed(
    toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", warm._dispatch)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    execution = {**toy.source["execution"], "devices_per_run": 2}
    train = {**toy.source["train"], "epochs": 5}
    source = {**toy.source, "execution": execution, "train": train, "seeds": 1}
    plan = make_plan(load_study({**source, "arms": {"baseline": {}, "majority": {}}}))
    reference = make_job(plan, plan.runs[0], tmp_path / "reference")
    assert reference.processes == 2
    perform_together([Shared(reference)], tmp_path)

    run = make_job(plan, plan.runs[0], tmp_path / "runs").run
    for whom, step, reason in (
        (1, 1, "process 2 of the 2 that share the run was killed"),
        (None, 9, "worker was killed"),
    ):
        executor = LocalExecutor(plan.study.execution, tmp_path / "logs")
        monitor = Killing(tmp_path, executor, whom, step)
        outcome = run_plan(plan, tmp_path / "runs", monitor, executor)
        assert reason in outcome.failed["baseline/seed-0"]
        assert monitor.listening == {"127.0.0.1"}
        end = time.monotonic() + 20
        while any(map(_runs, monitor.pids)):
            assert time.monotonic() < end, "a process of the run is still there"
            time.sleep(0.05)
    outcome = run_plan(plan, tmp_path / "runs", QuietMonitor())
    assert outcome.finished == ["baseline/seed-0"]
    assert json.loads(make_job(plan, plan.runs[1], tmp_path / "runs").run.result.read_text())["status"] == "finished"
    assert digests(run.path) == digests(reference.run.path)
    assert [e["step"] for e in all_events(run.events) if e["event"] == "resumed"][-1] > 0, (
        "it went on from a saved state"
    )
    assert not list(tmp_path.glob("fairtune-run-*"))


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
