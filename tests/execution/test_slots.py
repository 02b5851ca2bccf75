"""Places for workers on a machine of four GPUs: which are used, and what is refused before a start."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from fairtune.core.errors import DeviceError
from fairtune.execution.executors import slots
from fairtune.execution.executors.slots import find_devices, find_slots, worker_environment
from fairtune.settings.execution import Execution
from tests.fake_nvml import FakeNvml, use_fake


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    monkeypatch.setattr(slots, "estimate_memory", lambda _: 1)
    monkeypatch.setattr(slots, "available_cores", lambda: 8)
    return use_fake(monkeypatch)


def jobs() -> list[Any]:
    """On GPUs nothing is asked of them."""
    return [None] * 8


def shown(execution: Execution) -> dict[str, str]:
    """What each worker would see."""
    return {
        slot.name: worker_environment(slot.device, slot.threads)["CUDA_VISIBLE_DEVICES"]
        for slot in find_slots(execution, jobs())
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


@pytest.mark.parametrize("listed", ["", "-1", "NoDevFiles"])
@pytest.mark.usefixtures("nvml")
def test_where_cuda_shows_no_gpu_runs_are_on_the_cpu(monkeypatch: pytest.MonkeyPatch, listed: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert find_devices(["auto"]) == ["cpu"]
    with pytest.raises(DeviceError, match=f"no visible GPU .CUDA_VISIBLE_DEVICES is '{listed}'"):
        find_devices(["cuda"])


@pytest.mark.usefixtures("nvml")
def test_workers_count_gpus_as_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    for device in ("cuda:1", "cpu"):
        assert worker_environment(device)["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert worker_environment("cuda:1")["CUDA_VISIBLE_DEVICES"] == "1"


@pytest.mark.usefixtures("nvml")
def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    with pytest.raises(DeviceError, match="names cuda:2, but this machine has 2 visible GPUs"):
        find_slots(Execution(devices=("cuda:0", "cuda:2")), jobs())


def test_where_nvml_is_missing_devices_are_taken_at_their_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    assert shown(Execution(devices=("cuda:1", "cuda:2"))) == {"cuda-1": "5", "cuda-2": "2"}
