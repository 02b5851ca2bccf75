"""Several workers: how many there are, what each is given, and that nothing which is recorded depends on it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import Stopped
from fairtune.execution import cost_estimate
from fairtune.execution.executors import local, memory_estimate, slots
from fairtune.execution.executors.local import LocalExecutor
from fairtune.execution.executors.memory_estimate import estimate_memory
from fairtune.execution.executors.slots import find_slots, worker_environment
from fairtune.execution.executors.worker import is_spoilt
from fairtune.execution.study_run import run_plan
from fairtune.ledger.events import all_events
from fairtune.monitor.terminal import QuietMonitor
from fairtune.settings.execution import Execution
from fairtune.study.plan import Plan, make_plan
from fairtune.study.run_spec import RunSpec
from fairtune.study.study_file import load_study
from tests import warm
from tests.execution.conftest import ToyStudy, digests
from tests.fake_nvml import use_fake

GB = 1 << 30


@pytest.fixture
def plan(toy: ToyStudy) -> Plan:
    return make_plan(load_study({**toy.source, "arms": {"baseline": {}, "fast": {"lr": 2e-3}}, "seeds": 2}))


@pytest.fixture
def jobs(plan: Plan, tmp_path: Path) -> list[RunSpec]:
    return [run.at(tmp_path / "runs") for run in plan.runs]


@pytest.mark.parametrize(
    ("execution", "cores", "memory", "names"),
    [
        ({}, 2, 100 * GB, ["cpu-1", "cpu-2"]),
        ({}, 1, 100 * GB, ["cpu"]),
        ({}, 64, 100 * GB, ["cpu-1", "cpu-2", "cpu-3", "cpu-4"]),
        ({}, 2, 0, ["cpu"]),
        ({}, 4, 1.5 * GB, ["cpu-1", "cpu-2"]),
        ({"threads": 2}, 4, 100 * GB, ["cpu-1", "cpu-2"]),
        ({"threads": 8}, 4, 100 * GB, ["cpu"]),
        ({"workers": 3}, 1, 0, ["cpu-1", "cpu-2", "cpu-3"]),
        ({"devices": ("cuda:0", "cuda:1")}, 8, 100 * GB, ["cuda-0", "cuda-1"]),
        ({"devices": ("cuda:0", "cuda:1"), "workers": 2}, 8, 0, ["cuda-0-1", "cuda-1-1", "cuda-0-2", "cuda-1-2"]),
        ({"devices": ("cuda", "cpu")}, 2, 100 * GB, ["cuda-0", "cpu-1", "cpu-2"]),
    ],
)
def test_there_is_a_worker_per_core_or_gpu_and_no_more_than_jobs_or_memory_allow(
    jobs: list[RunSpec], monkeypatch: pytest.MonkeyPatch, execution: Any, cores: int, memory: float, names: list[str]
) -> None:
    monkeypatch.setattr(slots, "available_cores", lambda: cores)
    monkeypatch.setattr(slots, "available_memory", lambda: int(memory))
    found = find_slots(Execution(**{"devices": ("cpu",), **execution}), jobs)
    assert [slot.name for slot in found] == names
    for slot in found:
        assert slot.threads == (execution.get("threads", 1) if slot.device == "cpu" else None)


def test_a_worker_is_told_its_threads_in_every_librarys_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    one, two = worker_environment("cpu"), worker_environment("cpu", 2)
    assert (one["OMP_NUM_THREADS"], one["MKL_NUM_THREADS"], one["OPENBLAS_NUM_THREADS"]) == ("1", "1", "1")
    assert "OMP_WAIT_POLICY" not in one
    assert (two["OMP_NUM_THREADS"], two["OMP_WAIT_POLICY"]) == ("2", "PASSIVE")
    assert worker_environment("cuda:0", None)["OMP_NUM_THREADS"] == "7"


def test_memory_is_counted_from_sizes_alone_and_nothing_is_refused_for_it(
    toy: ToyStudy, tiny_model: Path, tmp_path: Path
) -> None:
    def beyond(**train: Any) -> int:
        return estimate_memory(toy.job("runs", **train)) - memory_estimate.LIBRARIES

    assert (
        0 < beyond(batch_size=1) < beyond(batch_size=16) < beyond(batch_size=32) < beyond(batch_size=32, max_length=64)
    )
    copy = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    job = ToyStudy({**toy.source, "model": str(copy)}, tmp_path).job("runs")
    (copy / "model.safetensors").write_bytes(b"\xff" * 20)
    assert estimate_memory(job) == memory_estimate.LIBRARIES


def test_the_study_takes_as_long_as_its_busiest_worker() -> None:
    assert cost_estimate._total_seconds([3, 1, 1, 1], 1) == 6
    assert cost_estimate._total_seconds([3, 1, 1, 1], 2) == 3
    assert cost_estimate._total_seconds([1, 1, 1, 3], 2) == 4, "runs begin in the plan's order"


class Noting(QuietMonitor):
    """A monitor that notes how many runs were under way at most.

    Args:
        stop: presses Ctrl-C as soon as one trains.
    """

    def __init__(self, stop: bool = False) -> None:
        self.most, self._stop, self._running = 0, stop, set[str]()

    def update(self, run: str, event: str, values: Mapping[str, Any]) -> None:
        (self._running.discard if event == "ended" else self._running.add)(run)
        self.most = max(self.most, len(self._running))
        if self._stop and values.get("phase") == "train":
            raise KeyboardInterrupt


def test_bits_do_not_depend_on_how_many_runs_go_on_side_by_side_nor_on_a_stop(
    toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", warm._dispatch)
    train = toy.source["train"] | {"epochs": 2, "evaluate": 26}
    found = []
    for workers in (1, 2):
        monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / f"cache-{workers}"))  # both make the tokens, or one waits
        execution = {"devices": "cpu", "workers": workers}
        source = {**toy.source, "train": train, "arms": {"baseline": {}}, "seeds": 2, "execution": execution}
        plan, runs, monitor = make_plan(load_study(source)), tmp_path / f"runs-{workers}", Noting()
        if workers == 2:
            with pytest.raises(Stopped):
                run_plan(plan, runs, Noting(stop=True))
        outcome = run_plan(plan, runs, monitor)
        assert sorted(outcome.finished) == ["baseline/seed-0", "baseline/seed-1"], outcome.failed
        assert monitor.most == workers
        folders = [runs / "toy" / "baseline" / f"seed-{seed}" for seed in (0, 1)]
        found.append([digests(folder) for folder in folders])
        steps = [e["step"] for f in folders for e in all_events(f / "events.jsonl") if e["event"] == "resumed"]
        assert any(steps) == (workers == 2), "what was stopped had saved its state"
        for folder in folders:
            assert json.loads((folder / "environment.json").read_text())["torch"]["threads"] == 1
    assert found[0] == found[1]
    assert found[0][0] != found[0][1], "seeds differ"
    logs = sorted(file.name for file in (tmp_path / "runs-2" / "toy" / "logs").iterdir())
    assert logs == ["worker-cpu-1.log", "worker-cpu-2.log"]


HUNGRY = """
import json, os, sys, time
from pathlib import Path
shared = Path(os.environ["SHARED"])
(shared / f"worker-{os.getpid()}").touch()
print('{"type": "ready"}', flush=True)
for line in sys.stdin:
    job = json.loads(line)
    name = Path(job["folder"]).parent.name + Path(job["folder"]).name.removeprefix("seed")
    (shared / name).touch()
    if name == "baseline-0":
        while not (shared / "baseline-1").exists() and not (shared / "fast-0").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), 9)
    time.sleep(0.2)
    print(json.dumps({"type": "ended", "result": {"status": "finished"}}), flush=True)
"""


@pytest.mark.parametrize("counted", [True, False])
def test_a_worker_that_memory_had_no_room_for_says_so_and_is_not_replaced(
    jobs: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: bool
) -> None:
    began: list[str] = []
    give = local._Worker.give
    monkeypatch.setattr(local._Worker, "give", lambda self, job: (began.append(job.name), give(self, job))[1])
    monkeypatch.setattr(local, "WORKER", (sys.executable, "-c", HUNGRY))
    monkeypatch.setenv("SHARED", str(tmp_path))
    kills = iter(range(10))
    monkeypatch.setattr(local, "_memory_kills", lambda: next(kills) if counted else 0)
    ordered = sorted(jobs, key=lambda job: job.name)
    executor = LocalExecutor(Execution(devices=("cpu",), workers=2), tmp_path / "logs")
    executor.submit(ordered)
    ended = {event.job.name: event.values["result"] for event in executor.events() if event.is_last}
    executor.stop()
    assert began == [job.name for job in ordered], "jobs begin in their order, whoever is free"
    assert [name for name, result in ended.items() if result["status"] == "failed"] == ["baseline/seed-0"]
    reason = ended["baseline/seed-0"]["reason"]
    assert "ran out of memory" in reason
    assert "`execution: {workers: 1}`" in reason
    assert ("most often" in reason) != counted
    assert len(list(tmp_path.glob("worker-*"))) == (2 if counted else 3), "what lacks memory is not started again"


ON_A_GPU = """
import json, os, sys
from pathlib import Path
print('{"type": "ready"}', flush=True)
for line in sys.stdin:
    name = Path(json.loads(line)["folder"]).parent.name + Path(json.loads(line)["folder"]).name
    if name == "baselineseed-0":  # as after a CUDA error
        print(json.dumps({"type": "ended", "leaving": True, "result": {"status": "failed"}}), flush=True)
        break
    if name == "fastseed-0":
        os._exit(1)
    card = os.environ["CUDA_VISIBLE_DEVICES"]
    print(json.dumps({"type": "ended", "result": {"status": "finished", "card": card}}), flush=True)
"""


def test_a_worker_that_cuda_has_spoilt_or_that_dies_is_replaced_on_its_gpu(
    jobs: list[RunSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake(monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.setattr(local, "WORKER", (sys.executable, "-c", ON_A_GPU))
    executor = LocalExecutor(Execution(devices=("cuda:1",)), tmp_path / "logs")
    executor.submit(jobs)
    ended = {event.job.name: event.values["result"] for event in executor.events() if event.is_last}
    executor.stop()
    assert {name: result.get("card", "failed") for name, result in ended.items()} == {
        "baseline/seed-0": "failed", "fast/seed-0": "failed", "baseline/seed-1": "3", "fast/seed-1": "3",
    }  # fmt: skip
    assert "exit code 1" in ended["fast/seed-0"]["reason"]


def test_only_a_cuda_error_spoils_a_worker() -> None:
    failed = {"status": "failed", "kind": "error"}
    assert is_spoilt({**failed, "reason": "AcceleratorError: CUDA error: an illegal memory access was encountered"})
    assert not is_spoilt({**failed, "reason": "out of memory; a smaller batch_size"})
    assert not is_spoilt({"status": "finished"})
