"""Manners on a machine of four GPUs that others use too, and on one whose GPUs fail; the workers are scripts, NVML is made up."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import DeviceError, Stopped
from fairtune.execution.executors import free_gpus, local, lost_devices
from fairtune.execution.executors.base import JobEvent
from fairtune.execution.executors.local import LocalExecutor
from fairtune.execution.executors.slots import device_gpus
from fairtune.execution.executors.worker import is_spoilt
from fairtune.execution.job import Job
from fairtune.execution.stopwatch import machine_watch
from fairtune.execution.stopwatch.machine_watch import MachineWatch
from fairtune.execution.study_run import run_plan
from fairtune.monitor.terminal import QuietMonitor
from fairtune.settings.execution import Execution
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from tests.execution.conftest import ToyStudy
from tests.fake_nvml import GB, FakeNvml, use_fake

pytestmark = pytest.mark.slow
WORKER = """
import json, os, sys, time
from pathlib import Path
shared = Path(os.environ["SHARED"])
card = os.environ.get("CUDA_VISIBLE_DEVICES", "none")
print('{"type": "ready"}', flush=True)
for line in sys.stdin:
    seed = json.loads(line)["plan"]["seed"]
    (shared / f"began-{seed}-on-{card}").touch()
    print('{"type": "started"}', flush=True)
    fault = shared / f"fault-{card}"
    while not (shared / "go").exists() and not fault.exists():
        time.sleep(0.01)
    if fault.exists() and fault.read_text() == "dies":
        os._exit(1)
    if fault.exists() and fault.read_text() == "spoils":
        fault.unlink()
        print(json.dumps({"type": "ended", "leaving": True, "result": {"status": "failed"}}), flush=True)
        time.sleep(0.3)
        break
    if fault.exists() and fault.read_text() == "hangs":
        time.sleep(600)
    if fault.exists():
        print(json.dumps({"type": "device_lost", "reason": fault.read_text()}), flush=True)
        os._exit(75)
    print(json.dumps({"type": "ended", "result": {"status": "finished", "card": card}}), flush=True)
"""


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeNvml:
    monkeypatch.setattr(local, "WORKER", (sys.executable, "-c", WORKER))
    monkeypatch.setattr(free_gpus, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(lost_devices, "LOOK_SECONDS", 0.3)
    monkeypatch.setattr(local, "STOP_SECONDS", 20.0)  # where a test has failed, others need not wait for its workers
    monkeypatch.setattr(free_gpus, "estimate_memory", lambda _: 6 * GB)
    monkeypatch.setenv("SHARED", str(tmp_path))
    return use_fake(monkeypatch)


def make_jobs(folder: Path, count: int) -> list[Job]:
    plan: dict[str, Any] = {"arm": "a", "settings": {"train": {}}, "signature": "s", "key": "k"}
    return [
        Job(str(folder / "study" / "a" / f"seed-{n}"), {**plan, "seed": n}, {}, {"identity": "m"}, 1, False, {})
        for n in range(count)
    ]


def put(file: Path, text: str) -> None:
    """Write it in one go: a worker that looks meanwhile must not find it empty."""
    aside = file.with_name(f"{file.name}.aside")
    aside.write_text(text)
    aside.rename(file)


class Watched:
    """An executor at work in a thread, and what it said."""

    def __init__(self, folder: Path, jobs: int, **execution: Any) -> None:
        self.folder, self.events = folder, list[JobEvent]()
        self.error: Exception | None = None
        self.executor = LocalExecutor(Execution(**execution), folder / "logs")
        self.executor.submit(make_jobs(folder, jobs))
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            for event in self.executor.events():
                self.events.append(event)
        except Exception as error:
            self.error = error

    def texts(self, kind: str) -> list[str]:
        return [event.values["text"] for event in list(self.events) if event.type == kind]

    @property
    def began(self) -> set[str]:
        return {file.name.removeprefix("began-") for file in self.folder.glob("began-*")}

    def wait(self, fits: Callable[[], object]) -> None:
        until = time.monotonic() + 30
        while not fits():
            assert time.monotonic() < until, (self.events, self.began, self.error)
            time.sleep(0.01)

    def results(self) -> dict[str, str]:
        """Where each run was finished."""
        (self.folder / "go").touch()
        self._thread.join(30)
        assert not self._thread.is_alive()
        ended = [event for event in self.events if event.type == "ended"]
        return {event.job.name: event.values["result"].get("card", "failed") for event in ended}

    def stop(self) -> None:
        (self.folder / "go").touch()
        self.executor.stop()
        self._thread.join(30)


@pytest.fixture
def watch(nvml: FakeNvml, tmp_path: Path) -> Iterator[Callable[..., Watched]]:  # noqa: ARG001
    made: list[Watched] = []

    def make(jobs: int, **execution: Any) -> Watched:
        made.append(Watched(tmp_path, jobs, **execution))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def test_two_visible_gpus_have_two_workers(watch: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    study = watch(4)
    study.wait(lambda: len(study.began) == 2)
    assert study.began == {"0-on-2", "1-on-3"}
    assert sorted(study.results()) == ["a/seed-0", "a/seed-1", "a/seed-2", "a/seed-3"]
    assert study.texts("note") == study.texts("waiting") == []


def test_a_study_waits_for_gpus_that_others_use_and_begins_at_once_on_those_that_are_free(
    nvml: FakeNvml, watch: Callable[..., Watched]
) -> None:
    nvml.cards[0].processes = {1: GB}
    nvml.cards[1].used = 36 * GB
    study = watch(4, wait_for_free=True)
    study.wait(lambda: len(study.began) == 2 and study.texts("waiting"))
    assert study.began == {"0-on-2", "1-on-3"}
    assert study.texts("waiting") == [
        "waiting for a free GPU: GPU 0 is used by 1 other process; GPU 1 lacks 2.1 GB of free memory"
    ]
    nvml.cards[0].processes = {}
    study.wait(lambda: "2-on-0" in study.began)
    study.wait(lambda: len(study.texts("waiting")) == 2)
    assert study.texts("waiting")[1] == "waiting for a free GPU: GPU 1 lacks 2.1 GB of free memory"
    nvml.cards[1].used = 30 * GB
    study.wait(lambda: "3-on-1" in study.began)
    assert study.results() == {"a/seed-0": "2", "a/seed-1": "3", "a/seed-2": "0", "a/seed-3": "1"}


def test_one_job_takes_whichever_gpu_is_free_and_needs_no_more_than_there_can_be(
    nvml: FakeNvml, watch: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_gpus, "estimate_memory", lambda _: 900 * GB)
    for card in nvml.cards[:3]:
        card.processes = {1: GB}
    study = watch(1, wait_for_free=True)
    study.wait(lambda: study.began == {"0-on-3"})
    assert study.results() == {"a/seed-0": "3"}


def test_a_study_that_waits_can_be_stopped(nvml: FakeNvml, tmp_path: Path) -> None:
    for card in nvml.cards:
        card.processes = {1: GB}
    executor = LocalExecutor(Execution(wait_for_free=True), tmp_path / "logs")
    executor.submit(make_jobs(tmp_path, 2))
    events = executor.events()
    event = next(events)
    assert (event.type, event.job.name) == ("waiting", "a/seed-0")
    with pytest.raises(Stopped):
        events.throw(Stopped())  # as a signal does
    executor.stop()
    assert not list(tmp_path.glob("began-*"))


def test_waiting_has_no_meaning_on_a_cpu_and_that_is_said_once(watch: Callable[..., Watched]) -> None:
    study = watch(2, wait_for_free=True, devices=("cpu",), workers=1)
    assert len(study.results()) == 2
    assert study.texts("note") == ["execution.wait_for_free has no meaning on a CPU, so runs begin at once."]


def test_places_of_several_gpus_see_them_all_and_what_is_left_over_is_said(watch: Callable[..., Watched]) -> None:
    study = watch(2, devices_per_run=3)
    assert study.results() == {"a/seed-0": "0,1,2", "a/seed-1": "0,1,2"}
    assert study.texts("note") == ["cuda:3 is not used: execution.devices_per_run is 3."]


@pytest.mark.parametrize("fault", ["uncorrectable ECC error", "dies", "hangs"])
def test_a_gpu_that_fails_is_used_no_more_and_its_run_goes_on_elsewhere(
    nvml: FakeNvml, watch: Callable[..., Watched], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    given: list[str] = []
    give = local._Worker.give
    monkeypatch.setattr(local._Worker, "give", lambda self, job: (given.append(job.name), give(self, job))[1])
    study = watch(6)
    study.wait(lambda: len(study.began) == 4)
    if fault != "uncorrectable ECC error":
        nvml.cards[1].fault = nvml.NVML_ERROR_GPU_IS_LOST
    put(tmp_path / "fault-1", fault)
    study.wait(lambda: study.texts("device_lost"))
    reason = fault if "ECC" in fault else "it has fallen off the bus"
    assert study.texts("device_lost") == [
        f"GPU 1 (NVIDIA A100-SXM4-40GB) has failed ({reason}) and is not used any more; a/seed-1 goes on elsewhere, from its last "
        "checkpoint"
    ]
    found = study.results()
    assert len(found) == 6
    assert set(found.values()) == {"0", "2", "3"}, "nothing failed, and nothing more was given to it"
    assert given[4:] == ["a/seed-1", "a/seed-4", "a/seed-5"], "it is the next to begin"


def test_a_run_whose_gpu_fails_takes_one_that_was_not_needed(watch: Callable[..., Watched], tmp_path: Path) -> None:
    put(tmp_path / "fault-0", "hardware stack error")
    study = watch(1)
    study.wait(lambda: "0-on-1" in study.began)
    assert study.results() == {"a/seed-0": "1"}


def test_when_every_gpu_has_failed_the_study_ends_with_a_sentence_and_no_run_has_failed(
    nvml: FakeNvml, watch: Callable[..., Watched], tmp_path: Path
) -> None:
    del nvml.cards[2:]
    for number in range(2):
        put(tmp_path / f"fault-{number}", "GPU is lost")
    study = watch(3)
    study.wait(lambda: study.error is not None)
    assert isinstance(study.error, DeviceError)
    assert str(study.error) == (
        "every GPU that this study could use has failed (GPU 0 (NVIDIA A100-SXM4-40GB): GPU is lost; GPU 1 (NVIDIA "
        "A100-SXM4-40GB): GPU is lost). 3 runs are left where training stopped; once a GPU works again, the same command goes on "
        "from there."
    )
    assert study.results() == {}
    assert "is left at its last checkpoint" in study.texts("device_lost")[-1]
    assert not (tmp_path / "study").exists(), "nothing is recorded as failed"


def test_a_worker_that_dies_on_a_healthy_gpu_is_a_failed_run_and_is_replaced(
    watch: Callable[..., Watched], tmp_path: Path
) -> None:
    (tmp_path / "study").mkdir()
    put(tmp_path / "fault-0", "dies")
    study = watch(2, devices=("cuda:0",))
    assert study.results() == {"a/seed-0": "failed", "a/seed-1": "failed"}
    assert study.texts("device_lost") == []


@pytest.mark.usefixtures("nvml")
@pytest.mark.parametrize("execution", [{"devices": "cuda:9"}, {"devices_per_run": 5}])
def test_devices_that_are_not_there_are_told_of_before_anything_begins(
    toy: ToyStudy, tmp_path: Path, execution: dict[str, Any]
) -> None:
    class Beginning(QuietMonitor):
        def begin(self, *_: Any) -> None:
            pytest.fail("nothing was to begin")

    plan = make_plan(load_study({**toy.source, "arms": {"baseline": {}}, "seeds": 1, "execution": execution}))
    with pytest.raises(DeviceError, match="this machine has 4 visible GPUs, cuda:0 to cuda:3"):
        run_plan(plan, tmp_path / "runs", Beginning())


def test_of_what_is_timed_only_its_own_gpu_is_watched(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_watch, "EVERY_SECONDS", 0.01)
    monkeypatch.setattr(machine_watch, "LOOK_SECONDS", 0.01)
    nvml.cards[0].processes, nvml.cards[1].processes = {1: GB}, {os.getpid(): GB}
    with MachineWatch(os.getpid(), device_gpus("cuda:1")) as watch:
        until = time.monotonic() + 20
        while not any("gpus" in sample for sample in watch.samples):
            assert time.monotonic() < until
            time.sleep(0.01)
    seen = next(sample["gpus"] for sample in watch.samples if "gpus" in sample)
    assert [(gpu["index"], gpu["other_processes"]) for gpu in seen] == [(1, 0)]


def test_of_two_workers_on_a_gpu_that_fails_neither_is_given_anything_more(
    nvml: FakeNvml, watch: Callable[..., Watched], tmp_path: Path
) -> None:
    del nvml.cards[2:]
    study = watch(6, workers=2)
    study.wait(lambda: len(study.began) == 4)
    put(tmp_path / "fault-0", "uncorrectable ECC error")
    study.wait(lambda: len(study.texts("device_lost")) == 2)
    found = study.results()
    assert len(found) == 6
    assert set(found.values()) == {"1"}


def test_a_worker_that_cuda_has_spoilt_gets_no_further_run_and_another_takes_its_place(
    watch: Callable[..., Watched], tmp_path: Path
) -> None:
    put(tmp_path / "fault-1", "spoils")
    study = watch(3, devices=("cuda:1",))
    assert study.results() == {"a/seed-0": "failed", "a/seed-1": "1", "a/seed-2": "1"}
    failed = {"status": "failed", "kind": "error"}
    assert is_spoilt({**failed, "reason": "AcceleratorError: CUDA error: an illegal memory access was encountered"})
    assert not is_spoilt({**failed, "reason": "out of memory; a smaller batch_size"})
    assert not is_spoilt({"status": "finished"})
