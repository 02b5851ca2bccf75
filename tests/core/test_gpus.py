"""How GPUs are: what a run may have of them, and whether one has failed; our own processes are nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fake_nvml import GB, FakeNvml, Part, use_fake

from fairtune.core import process_family
from fairtune.core.gpus import Gpu, count_ecc_errors, describe_gpu, find_fault, find_gpus, find_room
from fairtune.core.process_family import HEAD, foreign_processes, head_of_family, is_there, sees_all_processes


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    return use_fake(monkeypatch)


@pytest.fixture
def child() -> Iterator[int]:
    """A process of ours."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


def gpu(number: int = 0) -> Gpu:
    return (find_gpus() or ())[number]


def test_a_gpu_is_described_with_everything_that_may_disturb_a_run(nvml: FakeNvml, child: int) -> None:
    card = nvml.cards[2]
    card.processes = {os.getpid(): 3 * GB, child: 2 * GB, 1: GB}
    card.utilisation, card.temperature, card.reasons = 97, 83, 0x4 | 0x20 | 0x40 | 0x1
    found = describe_gpu(gpu(2))
    assert found == {
        "index": 2, "name": "NVIDIA A100-SXM4-40GB", "temperature": 83, "utilisation": 97, "clock_mhz": 1410,
        "slowed": ["heat", "power cap"], "memory_used_bytes": 7 * GB, "memory_bytes": 40 * GB, "other_processes": 1,
    }  # fmt: skip
    room = find_room(gpu(2))
    assert (room.others, room.free, room.memory) == (1, 38 * GB, 40 * GB), "what our own processes hold is ours to use"
    assert nvml.open == 0


def test_an_older_driver_is_asked_in_its_own_words(nvml: FakeNvml) -> None:
    reasons = nvml.nvmlDeviceGetCurrentClocksEventReasons
    del nvml.nvmlDeviceGetCurrentClocksEventReasons
    nvml.cards[0].reasons = 0x8
    assert describe_gpu(gpu())["slowed"] is None
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons = reasons
    assert describe_gpu(gpu())["slowed"] == ["hardware slowdown"]


def test_a_part_tells_of_itself_and_its_gpu_of_heat(nvml: FakeNvml) -> None:
    nvml.cards[0].parts = [Part("MIG-a", 7, processes={1: GB}), Part("MIG-b", 8)]
    nvml.cards[0].temperature = 71
    first, second = describe_gpu(gpu(0)), describe_gpu(gpu(1))
    assert (first["temperature"], first["clock_mhz"], first["utilisation"]) == (71, 1410, None)
    assert (first["memory_bytes"], first["other_processes"], second["other_processes"]) == (5 * GB, 1, 0)


def test_in_a_container_nobody_is_taken_for_another(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.cards[0].processes = {4_100_000: GB, os.getpid(): GB}
    for module in ("process_family", "gpus"):
        monkeypatch.setattr(f"fairtune.core.{module}.sees_all_processes", lambda: False)
    assert describe_gpu(gpu())["other_processes"] is None
    assert (find_room(gpu()).others, find_room(gpu()).free) == (None, 37 * GB)


def test_only_the_machines_own_space_of_process_numbers_can_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, first in (("4026531836", True), ("4026532198", False)):
        (tmp_path / number).symlink_to(f"pid:[{number}]")
        monkeypatch.setattr(process_family, "OWN_SPACE", tmp_path / number)
        assert sees_all_processes() is first


def test_the_processes_of_a_study_are_its_own_and_what_they_started(
    monkeypatch: pytest.MonkeyPatch, child: int
) -> None:
    monkeypatch.setattr(process_family, "sees_all_processes", lambda: True)
    monkeypatch.delenv(HEAD, raising=False)
    with subprocess.Popen(["sleep", "0"]) as ended:
        pass
    assert foreign_processes([os.getpid(), child, child, ended.pid]) == 0
    assert not is_there(ended.pid)
    assert foreign_processes([1, child]) == 1
    code = "import os; from fairtune.core import process_family as f; print(f.head_of_family(), f.is_of_family(CHILD, HEAD))"
    code = code.replace("CHILD", str(child)).replace("HEAD", str(os.getpid()))
    for named, head in ((str(os.getpid()), os.getpid()), (str(child), None), ("x", None)):
        worker = subprocess.Popen(
            [sys.executable, "-c", code], env={**os.environ, HEAD: named}, stdout=subprocess.PIPE, encoding="utf-8"
        )
        assert worker.communicate()[0].split() == [str(head or worker.pid), "True"], "a sibling is no stranger"
    assert head_of_family() == os.getpid()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("NVML_ERROR_GPU_IS_LOST", "it has fallen off the bus"),
        ("NVML_ERROR_NOT_FOUND", "it has fallen off the bus"),
        ("NVML_ERROR_RESET_REQUIRED", "its driver says that it must be reset"),
        ("NVML_ERROR_NOT_SUPPORTED", None),
    ],
)
def test_a_gpu_that_has_failed_is_told_from_one_that_only_does_not_answer(
    nvml: FakeNvml, fault: str, said: str | None
) -> None:
    one = gpu(1)
    assert find_fault(one, 0) is None
    nvml.cards[1].fault = getattr(nvml, fault)
    assert find_fault(one) == said
    found = describe_gpu(one)
    assert (found["index"], found["temperature"], found["other_processes"]) == (1, None, None)


def test_errors_that_ecc_could_not_correct_count_from_when_the_gpu_was_last_well(nvml: FakeNvml) -> None:
    nvml.cards[0].ecc = 3
    before = count_ecc_errors(gpu())
    assert (before, find_fault(gpu(), before)) == (3, None)
    nvml.cards[0].ecc = 4
    assert find_fault(gpu(), before) == "its memory had 1 error that ECC could not correct"
    assert find_fault(gpu()) is None
