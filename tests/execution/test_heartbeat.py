"""The heartbeat of workers: who watches knows what they do, and the study does not notice."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairtune.execution.executors import heartbeat, local
from fairtune.execution.executors.heartbeat import Heartbeat
from fairtune.execution.executors.local import LocalExecutor
from fairtune.execution.executors.slots import Slot, device_gpu
from fairtune.execution.job import Job
from fairtune.ledger.worker_signs import WorkerSign, read_signs, sign_file, write_sign
from fairtune.settings.execution import Execution
from tests.fake_nvml import GB, use_fake

SLOT = Slot("cpu", "cpu-1", 1)
TALKING = """
import json, sys
print('{"type": "ready"}', flush=True)
for line in sys.stdin:
    job = json.loads(line)
    print('{"type": "started"}', flush=True)
    print('{"type": "progress", "phase": "stage", "what": "tokenising", "done": 3, "of": 20}', flush=True)
    print('{"type": "progress", "phase": "train", "step": 4, "steps": 10}', flush=True)
    print(json.dumps({"type": "ended", "result": {"status": "finished"}}), flush=True)
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def wait_for(logs: Path, fits: Callable[[list[WorkerSign]], bool]) -> list[WorkerSign]:
    until = time.monotonic() + 20
    while not fits(found := read_signs(logs.parent)):
        assert time.monotonic() < until, found
        time.sleep(0.005)
    return found


def test_a_worker_is_told_of_while_it_works_and_no_longer(logs: Path) -> None:
    write_sign(logs, WorkerSign("cpu-9", "cpu"))  # of a process of this study that was killed
    beating = Heartbeat(logs, every=0.1)
    beating.add(SLOT, psutil.Process().pid)
    (sign,) = wait_for(logs, lambda found: [one.worker for one in found] == ["cpu-1"] and found[0].load is not None)
    assert (sign.device, sign.run, sign.every) == ("cpu", None, 0.1)
    assert sign.name
    assert 0 < (sign.memory_used or 0) < (sign.memory or 0)
    assert sign.load is not None
    assert 0 <= sign.load <= 1
    beating.note(SLOT, "baseline/seed-0", {"phase": "stage", "what": "tokenising", "done": 3, "of": 20})
    (sign,) = wait_for(logs, lambda found: found[0].run is not None)
    assert (sign.run, sign.phase, sign.done, sign.of) == ("baseline/seed-0", "tokenising", 3, 20)
    beating.note(SLOT, "baseline/seed-0", {"phase": "train", "step": 5, "steps": 9})
    (sign,) = wait_for(logs, lambda found: found[0].phase == "train")
    assert (sign.done, sign.of) == (5, 9)
    beat = sign.beat
    wait_for(logs, lambda found: found[0].beat > beat + 1)
    beating.note(SLOT, None, {"type": "ended"})
    wait_for(logs, lambda found: found[0].run is None)
    beating.remove(SLOT)
    wait_for(logs, lambda found: not found)
    beating.add(SLOT, psutil.Process().pid)
    wait_for(logs, lambda found: len(found) == 1)
    beating.stop()
    assert list(logs.iterdir()) == []


def test_a_gpu_is_told_of_by_its_number_and_our_own_workers_are_no_others(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = use_fake(monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    nvml.cards[3].utilisation, nvml.cards[3].temperature = 40, 61
    nvml.cards[3].processes = {psutil.Process().pid: 4 * GB, 1: GB}
    nvml.cards[2].processes = {1: GB}
    beating = Heartbeat(logs, every=0.01)
    for name in ("cuda-1-1", "cuda-1-2"):
        beating.add(Slot("cuda:1", name, None, device_gpu("cuda:1")), psutil.Process().pid)
    found = wait_for(logs, lambda found: len(found) == 2)
    beating.stop()
    name = nvml.cards[3].name
    for sign in found:
        seen = sign.name, sign.load, sign.memory_used, sign.memory, sign.temperature, sign.others
        assert seen == (name, 0.4, 6 * GB, 40 * GB, 61, 1)


@pytest.mark.parametrize("fault", ["gone", "failing"])
def test_what_goes_wrong_with_it_does_not_concern_the_study(
    logs: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    if fault == "gone":
        logs.rmdir()
    else:
        monkeypatch.setattr(heartbeat, "write_sign", lambda *_: 1 / 0)
    beating = Heartbeat(logs, every=0.001)
    beating.add(SLOT, 2**22 + 1)  # of no process
    until = time.monotonic() + 20
    while beating._beat < 3:
        assert time.monotonic() < until
        time.sleep(0.001)
    beating.stop()
    assert not logs.exists() or not list(logs.iterdir())


def test_a_study_has_signs_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "WORKER", (sys.executable, "-c", TALKING))
    monkeypatch.setattr(local, "find_slots", lambda *_: [SLOT])
    executor = LocalExecutor(Execution(devices=("cpu",)), tmp_path / "logs")
    job: Any = Job(
        plan={"arm": "baseline", "seed": 0}, **{name: {} for name in Job.__dataclass_fields__ if name != "plan"}
    )
    executor.submit([job])
    seen = []
    for event in executor.events():
        watched = executor._heartbeat._workers["cpu-1"].sign
        seen.append((event.type, watched.run, watched.phase, watched.done))
        wait_for(tmp_path / "logs", bool)
    executor.stop()
    assert seen == [
        ("ready", "baseline/seed-0", None, None),
        ("started", "baseline/seed-0", None, None),
        ("progress", "baseline/seed-0", "tokenising", 3),
        ("progress", "baseline/seed-0", "train", 4),
        ("ended", None, None, None),
    ]
    assert [file.name for file in (tmp_path / "logs").iterdir()] == ["worker-cpu-1.log"]
    assert not sign_file(tmp_path / "logs", "cpu-1").exists()
