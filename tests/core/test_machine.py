"""What the machine offers: its cores, its memory, and its GPUs, of which CUDA_VISIBLE_DEVICES is read as CUDA reads it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.fake_nvml import GB, UUIDS, FakeNvml, use_fake

from fairtune.core import machine
from fairtune.core.machine import (
    PATIENT,
    Gpu,
    available_cores,
    available_memory,
    describe_gpu,
    find_gpus,
    visible_gpus,
    wait_asleep,
)


@pytest.fixture(autouse=True)
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Control groups of our own, without limits at first; this process is in `inner`, which is in `outer`."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    monkeypatch.setattr(machine, "CGROUPS", tmp_path)
    monkeypatch.setattr(machine, "_groups", lambda: iter([inner, inner.parent]))
    return inner


@pytest.mark.parametrize(
    ("inner", "outer", "cores"),
    [("max 100000", "max 100000", 8), ("250000 100000", "max 100000", 2), ("max 100000", "50000 100000", 1)],
)
def test_a_containers_share_of_the_processors_counts(
    groups: Path, monkeypatch: pytest.MonkeyPatch, inner: str, outer: str, cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    (groups / "cpu.max").write_text(inner + "\n")
    (groups.parent / "cpu.max").write_text(outer + "\n")
    assert available_cores() == cores


def test_a_containers_memory_counts_without_the_files_that_are_only_kept(groups: Path) -> None:
    free = available_memory()
    (groups / "memory.max").write_text("5000\n")
    (groups / "memory.current").write_text("4000\n")
    (groups / "memory.stat").write_text("anon 3300\ninactive_file 700\n")
    assert available_memory() == 1700 < free
    (groups / "memory.max").write_text("max\n")
    assert available_memory() > 1700


@pytest.mark.parametrize(("given", "torch_is_there"), [({}, False), ({"GOMP_SPINCOUNT": "5"}, False), ({}, True)])
def test_threads_wait_asleep_unless_it_is_too_late_or_the_user_said_how(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], torch_is_there: bool
) -> None:
    environment = dict(given)
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(sys, "modules", {"torch": object()} if torch_is_there else {})
    wait_asleep()
    assert environment == (given if given or torch_is_there else PATIENT)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    return use_fake(monkeypatch)


def gpu(number: int = 0) -> Gpu:
    return (find_gpus() or ())[number]


def test_a_gpu_is_described_with_everything_that_may_disturb_a_run(nvml: FakeNvml) -> None:
    card = nvml.cards[2]
    card.processes = {os.getpid(): 3 * GB, os.getppid(): 2 * GB, 1: GB}
    card.utilisation, card.temperature, card.reasons = 97, 83, 0x4 | 0x20 | 0x40 | 0x1
    found = describe_gpu(gpu(2))
    assert found == {
        "index": 2, "name": "NVIDIA A100-SXM4-40GB", "temperature": 83, "utilisation": 97, "clock_mhz": 1410,
        "slowed": ["heat", "power cap"], "memory_used_bytes": 7 * GB, "memory_bytes": 40 * GB, "other_processes": 1,
    }  # fmt: skip
    assert describe_gpu(gpu(2), {1})["other_processes"] == 2
    assert nvml.open == 0


def test_what_a_gpu_does_not_answer_is_left_open(nvml: FakeNvml) -> None:
    one = gpu(1)
    nvml.deaf.add("nvmlDeviceGetUtilizationRates")
    assert describe_gpu(one)["utilisation"] is None
    assert describe_gpu(one)["temperature"] == 40
    nvml.cards[1].fault = nvml.NVML_ERROR_GPU_IS_LOST
    found = describe_gpu(one)
    assert (found["index"], found["temperature"], found["other_processes"]) == (1, None, None)


def test_in_a_container_no_process_counts_as_foreign(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.cards[0].processes = {4_100_000: GB, os.getpid(): GB}
    monkeypatch.setattr(machine, "sees_all_processes", lambda: False)
    assert describe_gpu(gpu())["other_processes"] is None


@pytest.mark.usefixtures("nvml")
@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ("2,3", [2, 3]),
        ("3,1", [3, 1]),
        (" 2 , 3", [2, 3]),
        ("2,", [2]),
        ("", []),
        ("-1", []),
        ("0,-1,1", [0]),
        ("0,9,1", [0]),
        ("NoDevFiles", []),
        (f"{UUIDS[3]},{UUIDS[0]}", [3, 0]),
        ("GPU-77de,GPU-90", [2, 3]),
        ("GPU-1a2", []),
        ("GPU-90ff,GPU-nobody,GPU-77", [3]),
    ],
)
def test_every_form_is_read_as_cuda_reads_it(listed: str, found: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert [gpu.number for gpu in visible_gpus() or ()] == found


def test_without_nvml_nothing_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert visible_gpus() is None
