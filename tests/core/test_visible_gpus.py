"""Which GPUs a process may use: CUDA_VISIBLE_DEVICES is read as CUDA reads it."""

from __future__ import annotations

import sys

import pytest
from tests.fake_nvml import UUIDS, FakeNvml, Part, use_fake

from fairtune.core.gpus import Gpu
from fairtune.core.visible_gpus import cuda_names, visible_gpus

PARTS = ("MIG-aaaa0000-1111", "MIG-bbbb0000-2222")


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    return use_fake(monkeypatch)


def numbers(listed: str) -> list[int]:
    return [gpu.number for gpu in visible_gpus({"CUDA_VISIBLE_DEVICES": listed}) or ()]


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
        ("-1,0", []),
        ("0,-1,1", [0]),
        ("0,9,1", [0]),
        ("0,x,1", [0]),
        ("1a100,2", [1, 2]),
        ("NoDevFiles", []),
        ("2,2", []),
        ("0,1,0", []),
        (UUIDS[2], [2]),
        (f"{UUIDS[3]},{UUIDS[0]}", [3, 0]),
        ("GPU-77de,GPU-90", [2, 3]),
        ("GPU-1a2", []),
        ("GPU-1a2b,GPU-1a2,GPU-77", [0]),
        ("GPU-90ff,GPU-nobody,GPU-77", [3]),
        ("GPU-90ff,GPU-90", []),
        ("GPU-90ff,2", [3]),
        ("2,GPU-90ff", [2]),
        ("gpu-90ff", []),
        ("MIG-anything", []),
    ],
)
def test_every_form_is_read_as_cuda_reads_it(listed: str, found: list[int]) -> None:
    assert numbers(listed) == found


def test_without_a_list_every_gpu_is_seen_in_the_order_of_the_bus(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.cards.reverse()
    assert [gpu.uuid for gpu in visible_gpus({}) or ()] == list(UUIDS)
    assert [gpu.uuid for gpu in visible_gpus({"CUDA_VISIBLE_DEVICES": "1"}) or ()] == [UUIDS[1]]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    assert [gpu.uuid for gpu in visible_gpus() or ()] == [UUIDS[2], UUIDS[0]]
    assert nvml.open == 0


def test_parts_that_mig_made_are_found_by_uuid_and_by_their_old_names(nvml: FakeNvml) -> None:
    nvml.cards[1].parts = [Part(PARTS[0], 7), Part(PARTS[1], 8, 1)]
    seen = visible_gpus({}) or []
    assert [(gpu.number, gpu.part) for gpu in seen] == [(0, None), (1, (7, 0)), (1, (8, 1)), (2, None), (3, None)]
    for listed, uuids in [
        (f"{PARTS[1]},{PARTS[0]}", [PARTS[1], PARTS[0]]),
        ("MIG-bbbb", [PARTS[1]]),
        ("MIG-", []),
        (f"MIG-{UUIDS[1]}/8/1", [PARTS[1]]),
        (f"MIG-{UUIDS[1]}/8/0", []),
        (f"{PARTS[0]},{UUIDS[0]}", [PARTS[0]]),
        (f"{PARTS[0]},{PARTS[0]}", []),
        ("0,1", [UUIDS[0], PARTS[0]]),
        (UUIDS[1], [PARTS[0]]),
    ]:
        found = visible_gpus({"CUDA_VISIBLE_DEVICES": listed}) or []
        assert [gpu.uuid for gpu in found] == uuids, listed
    assert cuda_names(seen[:3]) == f"0,{PARTS[0]},{PARTS[1]}"


def test_a_gpu_that_has_failed_is_left_out_and_the_others_are_then_named_by_uuid(nvml: FakeNvml) -> None:
    nvml.cards[1].fault = nvml.NVML_ERROR_GPU_IS_LOST
    seen = visible_gpus({}) or []
    assert [gpu.number for gpu in seen] == [0, 2, 3]
    assert numbers("1,2") == [2]
    assert cuda_names(seen[1:]) == f"{UUIDS[2]},{UUIDS[3]}", "CUDA may count the others otherwise now"
    nvml.cards[1].fault = None
    assert cuda_names(seen[1:]) == "2,3"


def test_without_nvml_nothing_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert visible_gpus({}) is None
    assert cuda_names([Gpu(0, "GPU-1")]) == "0"
