"""How a run's device fares is sampled while it runs: into its events, without ever disturbing it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from fairtune.execution import device_samples
from fairtune.execution.device_samples import DeviceSamples, ProcessorUse
from fairtune.ledger.events import SAMPLE, EventLog, all_events
from fairtune.ledger.seals import run_state
from tests.execution.conftest import ToyStudy, digests, perform_here
from tests.fake_nvml import GB, use_fake


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_samples, "EVERY_SECONDS", 0.01)


def sample(path: Path, device: str, count: int = 2) -> list[dict[str, Any]]:
    log, until = EventLog(path), time.monotonic() + 20
    log.write("resumed", 7, step=7)
    with DeviceSamples(log, device, path.parent):
        while len(found := [event for event in all_events(path) if event["event"] == SAMPLE]) < count:
            assert time.monotonic() < until
            time.sleep(0.005)
    log.close()
    return found


def test_a_gpu_run_has_samples_of_its_own_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = use_fake(monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    nvml.cards[2].processes = {os.getpid(): GB, 1: GB}
    nvml.cards[2].utilisation, nvml.cards[2].temperature, nvml.cards[2].reasons = 97, 84, 0x40
    nvml.cards[0].processes = {1: GB}
    found = sample(tmp_path / "events.jsonl", "cuda:0")[0]
    assert (found["unit"], nvml.open) == (7, 0)
    assert found["gpus"] == [
        {"index": 2, "temperature": 84, "utilisation": 97, "clock_mhz": 1410, "slowed": ["heat"],
         "memory_used_bytes": 3 * GB, "other_processes": 1}
    ]  # fmt: skip
    assert len((tmp_path / "events.jsonl").read_bytes().splitlines()[1]) < 300, "7,200 of them in ten hours"


def test_a_gpu_that_fails_meanwhile_is_sampled_as_far_as_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = use_fake(monkeypatch, cards=1)
    describe = device_samples.describe_gpu

    def failing(gpu: Any) -> dict[str, Any]:
        nvml.cards[0].fault = nvml.NVML_ERROR_GPU_IS_LOST
        return describe(gpu)

    monkeypatch.setattr(device_samples, "describe_gpu", failing)
    assert sample(tmp_path / "events.jsonl", "cuda:0")[-1]["gpus"] == [{"index": 0}]


def test_a_cpu_run_has_samples_of_what_others_take(tmp_path: Path) -> None:
    for found in sample(tmp_path / "events.jsonl", "cpu"):
        assert 0 <= found["others"] <= found["busy"] <= 1
        assert found["load_average"] >= 0
        assert "gpus" not in found


def test_shares_of_a_processor_are_ours_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "fairtune.execution.device_samples"
    clock, busy, own = [100.0], [50.0], [{1: 10.0, 2: 5.0}]
    monkeypatch.setattr(f"{module}.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(f"{module}.busy_seconds", lambda: (busy[0], 0.0))
    monkeypatch.setattr(f"{module}.study_seconds", lambda: own[0])
    monkeypatch.setattr(f"{module}.psutil.cpu_count", lambda: 2)
    use = ProcessorUse()
    clock[0], busy[0], own[0] = 105.0, 60.0, {1: 14.0, 3: 1.0}  # one process ended, another began
    found = use.look()
    assert (found["busy"], found["others"]) == (1.0, 0.5)
    clock[0], busy[0] = 110.0, 60.5
    assert (use.look()["busy"], found["others"]) == (0.05, 0.5)


def test_a_run_is_the_same_with_samples_and_is_sealed_with_them(toy: ToyStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled, broken = toy.job("sampled"), toy.job("broken")
    monkeypatch.setattr(device_samples, "EVERY_SECONDS", 0.001)
    assert perform_here(sampled)["status"] == "finished"
    monkeypatch.setattr(EventLog, "write_sample", lambda *_, **__: 1 / 0)
    assert perform_here(broken)["status"] == "finished"
    assert digests(sampled.run.path) == digests(broken.run.path)
    kinds = [event["event"] for event in all_events(sampled.run.events)]
    assert SAMPLE in kinds
    assert kinds[-1] == "finished", "what comes after would break the seal"
    assert run_state(sampled.run, sampled.key).status == "finished"
