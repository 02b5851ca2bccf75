"""Places for workers on a machine of four GPUs: which are used, how they are shared out, and what is refused before a start."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from fairtune.core.errors import DeviceError
from fairtune.core.process_family import HEAD
from fairtune.execution.executors import slots
from fairtune.execution.executors.slots import find_devices, find_slots, group_devices, worker_environment
from fairtune.execution.job import Job
from fairtune.settings.execution import Execution
from tests.fake_nvml import FakeNvml, Part, use_fake


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    monkeypatch.setattr(slots, "estimate_memory", lambda _: 1)
    monkeypatch.setattr(slots, "available_cores", lambda: 8)
    return use_fake(monkeypatch)


def jobs(count: int = 8) -> list[Job]:
    plan: dict[str, Any] = {"arm": "a", "settings": {"train": {}}}
    return [
        Job("", {**plan, "seed": seed}, {}, {"identity": "m"}, 1, save_model=False, attention={})
        for seed in range(count)
    ]


def shown(execution: Execution, count: int = 8) -> dict[str, str]:
    """What each worker would see."""
    return {
        slot.name: worker_environment(slot.device, slot.threads, slot.gpus)["CUDA_VISIBLE_DEVICES"]
        for slot in find_slots(execution, jobs(count))
    }


@pytest.mark.usefixtures("nvml")
def test_workers_are_one_for_each_visible_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Execution()) == {"cuda-0": "0", "cuda-1": "1", "cuda-2": "2", "cuda-3": "3"}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert shown(Execution()) == {"cuda-0": "2", "cuda-1": "3"}
    assert shown(Execution(devices=("cuda:1",))) == {"cuda-1": "3"}
    assert shown(Execution(devices=("cuda", "auto"), workers=2)) == {
        "cuda-0-1": "2", "cuda-1-1": "3", "cuda-0-2": "2", "cuda-1-2": "3",
    }  # fmt: skip
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-90ff,GPU-77de")
    assert shown(Execution()) == {"cuda-0": "3", "cuda-1": "2"}


@pytest.mark.parametrize("listed", ["", "-1", "NoDevFiles", "2,2"])
@pytest.mark.usefixtures("nvml")
def test_where_cuda_shows_no_gpu_runs_are_on_the_cpu(monkeypatch: pytest.MonkeyPatch, listed: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert find_devices(["auto"]) == ["cpu"]
    with pytest.raises(
        DeviceError, match=f"names cuda, but this machine has no visible GPU .CUDA_VISIBLE_DEVICES is '{listed}'"
    ):
        find_devices(["cuda"])


@pytest.mark.usefixtures("nvml")
def test_workers_count_gpus_as_we_do_and_know_whose_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    for device in ("cuda:1", "cpu"):
        found = worker_environment(device)
        assert found["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        assert int(found[HEAD]) > 0
    assert worker_environment("cuda:1")["CUDA_VISIBLE_DEVICES"] == "1"


@pytest.mark.usefixtures("nvml")
def test_a_device_that_is_not_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    with pytest.raises(DeviceError) as found:
        find_slots(Execution(devices=("cuda:0", "cuda:2")), jobs())
    assert str(found.value) == (
        "execution.devices names cuda:2, but this machine has 2 visible GPUs, cuda:0 to cuda:1 (CUDA_VISIBLE_DEVICES is '2,3'). "
        "Name one of those, or make others visible with CUDA_VISIBLE_DEVICES."
    )


def test_where_nobody_can_be_asked_devices_are_taken_at_their_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    assert shown(Execution(devices=("cuda:1", "cuda:2"))) == {"cuda-1": "5", "cuda-2": "2"}


def test_each_part_that_mig_made_has_a_worker(nvml: FakeNvml) -> None:
    nvml.cards[0].parts = [Part("MIG-a", 7), Part("MIG-b", 8)]
    del nvml.cards[2:]
    assert shown(Execution()) == {"cuda-0": "MIG-a", "cuda-1": "MIG-b", "cuda-2": "1"}
    with pytest.raises(DeviceError, match="cuda:0 is a part that MIG made of a GPU, and a run cannot have several"):
        find_slots(Execution(devices_per_run=2), jobs())


def test_several_devices_per_run_are_neighbours_of_one_kind(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Execution(devices_per_run=2)) == {"cuda-0_1": "0,1", "cuda-2_3": "2,3"}
    assert shown(Execution(devices_per_run=4)) == {"cuda-0_1_2_3": "0,1,2,3"}
    assert shown(Execution(devices_per_run=2, workers=2))["cuda-0_1-2"] == "0,1"
    assert group_devices(find_devices(["auto"]), 3) == ([("cuda:0", "cuda:1", "cuda:2")], ["cuda:3"])
    nvml.cards[0].name = nvml.cards[3].name = "NVIDIA H100"
    assert shown(Execution(devices_per_run=2)) == {"cuda-0_3": "0,3", "cuda-1_2": "1,2"}
    nvml.cards[1].name = "NVIDIA L4"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,2,1,0")
    assert shown(Execution(devices_per_run=2)) == {"cuda-0_3": "3,0"}


def test_more_devices_per_run_than_there_are_is_a_sentence(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**execution: Any) -> str:
        with pytest.raises(DeviceError) as found:
            find_slots(Execution(**execution), jobs())
        return str(found.value)

    assert refused(devices_per_run=4, devices=("cuda:0", "cuda:1")) == (
        "execution.devices_per_run is 4, but execution.devices names 2 GPUs. Set it to 2 or less, or give the study more GPUs."
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    assert refused(devices_per_run=4) == (
        "execution.devices_per_run is 4, but this machine has 2 visible GPUs, cuda:0 to cuda:1 (CUDA_VISIBLE_DEVICES is '1,2'). "
        "Set it to 2 or less, or give the study more GPUs."
    )
    nvml.cards[1].name = "NVIDIA L4"
    assert refused(devices_per_run=2) == (
        "execution.devices_per_run is 2, but this machine's 2 GPUs are of several kinds (1 x NVIDIA L4, 1 x NVIDIA "
        "A100-SXM4-40GB). Set it to what one kind has, or less."
    )


@pytest.mark.parametrize(
    ("cores", "threads", "devices", "workers"), [(8, 1, 2, 4), (8, 2, 2, 2), (1, 1, 2, 1), (8, 2, 3, 1), (8, 1, 1, 8)]
)
@pytest.mark.usefixtures("nvml")
def test_on_a_cpu_a_place_has_cores_for_all_its_processes(
    monkeypatch: pytest.MonkeyPatch, cores: int, threads: int, devices: int, workers: int
) -> None:
    monkeypatch.setattr(slots, "available_cores", lambda: cores)
    monkeypatch.setattr(slots, "available_memory", lambda: 1000)
    found = find_slots(Execution(devices=("cpu",), threads=threads, devices_per_run=devices), jobs())
    assert [(slot.device, slot.threads, slot.devices) for slot in found] == [("cpu", threads, devices)] * workers
