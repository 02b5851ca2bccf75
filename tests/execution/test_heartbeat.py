"""The heartbeat of workers: live views know what they do, and the study does not notice."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fairtune.execution.executors import heartbeat
from fairtune.execution.executors.heartbeat import Heartbeat
from fairtune.execution.executors.local import LocalExecutor
from fairtune.ledger.worker_signs import WorkerSign, read_signs, write_sign
from fairtune.settings.execution import Execution
from tests import warm
from tests.execution.conftest import ToyStudy
from tests.fake_nvml import GB, use_fake


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def wait_for(logs: Path, fits: Callable[[WorkerSign], bool]) -> WorkerSign:
    until = time.monotonic() + 20
    while not ((found := read_signs(logs.parent)) and fits(found[0])):
        assert time.monotonic() < until, found
        time.sleep(0.005)
    return found[0]


def test_a_worker_shows_what_it_does_while_it_works_and_no_longer(logs: Path) -> None:
    with Heartbeat(logs, "cpu-1", "cpu", every=0.1) as beating:
        sign = wait_for(logs, lambda found: found.beat > 1)
        assert (sign.worker, sign.device, sign.run) == ("cpu-1", "cpu", None)
        assert sign.name
        assert 0 < (sign.memory_used or 0) < (sign.memory or 0)
        assert 0 <= (sign.load or 0) <= 1
        beating.note("baseline/seed-0", {"phase": "stage", "what": "tokenising", "done": 3, "of": 20})
        sign = wait_for(logs, lambda found: found.run is not None)
        assert (sign.run, sign.phase, sign.done, sign.of) == ("baseline/seed-0", "tokenising", 3, 20)
        beating.note("baseline/seed-0", {"phase": "train", "step": 5, "steps": 9})
        sign = wait_for(logs, lambda found: found.phase == "train")
        assert (sign.done, sign.of) == (5, 9)
        beating.note(None, {})
        wait_for(logs, lambda found: found.run is None)
    assert list(logs.iterdir()) == []


def test_a_gpu_is_described_and_our_own_process_is_not_foreign(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = use_fake(monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    nvml.cards[3].utilisation, nvml.cards[3].temperature = 40, 61
    nvml.cards[3].processes = {os.getpid(): 4 * GB, 1: GB}
    with Heartbeat(logs, "cuda-1", "cuda:1", every=0.01):
        sign = wait_for(logs, lambda found: found.beat > 1)
    seen = sign.name, sign.load, sign.memory_used, sign.memory, sign.temperature, sign.others
    assert seen == (nvml.cards[3].name, 0.4, 6 * GB, 40 * GB, 61, 1)


@pytest.mark.parametrize("fault", ["gone", "failing"])
def test_what_goes_wrong_with_it_does_not_affect_the_worker(
    logs: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    if fault == "gone":
        logs.rmdir()
    else:
        monkeypatch.setattr(heartbeat, "write_sign", lambda *_: 1 / 0)
    with Heartbeat(logs, "cpu-1", "cpu", every=0.001) as beating:
        time.sleep(0.05)
        assert beating._thread.is_alive()
    assert not logs.exists() or not list(logs.iterdir())


def test_a_study_has_signs_while_it_runs(toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", warm._dispatch)
    (tmp_path / "logs").mkdir()
    write_sign(tmp_path / "logs", WorkerSign("cpu-9", "cpu"))  # of a process of this study that was killed
    executor = LocalExecutor(Execution(devices=("cpu",)), tmp_path / "logs")
    executor.submit([toy.job("runs", epochs=16)])
    for event in executor.events():
        if event.type == "started":
            sign = wait_for(tmp_path / "logs", lambda found: found.run is not None)
            assert (sign.worker, sign.run) == ("cpu", event.job.name)
    executor.stop()
    assert [file.name for file in (tmp_path / "logs").iterdir()] == ["worker-cpu.log"]
