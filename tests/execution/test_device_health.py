"""A run on a GPU that breaks is not a failed run: it goes on elsewhere. One that breaks by itself has failed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import DeviceLost
from fairtune.execution import run as run_module
from fairtune.execution.device_health import DeviceHealth
from fairtune.execution.executors import local
from fairtune.execution.job import make_job
from fairtune.execution.run import perform_run
from fairtune.execution.study_run import run_plan
from fairtune.ledger.events import all_events
from fairtune.ledger.seals import run_state
from fairtune.monitor.terminal import QuietMonitor
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from tests import warm
from tests.execution.conftest import ToyStudy, digests, perform_here
from tests.fake_nvml import FakeNvml, use_fake

ECC = "CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be asynchronously reported"
LAUNCH = "CUDA error: unspecified launch failure"


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    return use_fake(monkeypatch, cards=2)


def test_what_cuda_says_of_broken_hardware_is_believed(nvml: FakeNvml) -> None:
    health = DeviceHealth("cuda:0")
    assert health.fault(RuntimeError(ECC)) == 'CUDA says "uncorrectable ECC error"'
    for harmless in (
        LAUNCH,
        "CUDA out of memory. Tried to allocate 2 GiB",
        "CUBLAS_STATUS_EXECUTION_FAILED",
        "index 5",
    ):
        assert health.fault(RuntimeError(harmless)) is None, harmless
    assert health.fault(ValueError(ECC)) is None
    assert DeviceHealth("cpu").fault(RuntimeError(ECC)) is None
    assert nvml.open == 0


def test_of_other_errors_nvml_knows_whose_fault_they_are(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    health = DeviceHealth("cuda:0")
    nvml.cards[0].fault = nvml.NVML_ERROR_GPU_IS_LOST
    assert health.fault(RuntimeError(LAUNCH)) is None, "another GPU is no concern of this run"
    nvml.cards[1].ecc = 2
    assert health.fault(RuntimeError(LAUNCH)) == "its memory had 2 errors that ECC could not correct"
    nvml.cards[1].fault = nvml.NVML_ERROR_GPU_IS_LOST
    assert health.fault(RuntimeError(LAUNCH)) == "it has fallen off the bus"
    assert health.fault(RuntimeError("the loss is nan")) is None, "a run that fails by itself has failed"


def break_down(*_: object, **__: object) -> None:
    raise RuntimeError(ECC)


@pytest.mark.usefixtures("nvml")
def test_a_run_is_left_as_it_was_and_the_worker_says_so(toy: ToyStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    job = toy.job("runs")
    monkeypatch.setattr(run_module, "prepare_run", break_down)
    with pytest.raises(DeviceLost, match="uncorrectable ECC error"):
        perform_run(job.spec, job.run, "cuda:0", lambda: None, lambda _: None)
    assert run_state(job.run, job.plan["key"]).status == "interrupted"
    (warning,) = [event["text"] for event in all_events(job.run.events) if event["event"] == "warning"]
    assert (
        warning == 'its GPU failed: CUDA says "uncorrectable ECC error"; it goes on elsewhere from its last checkpoint'
    )
    assert perform_run(job.spec, job.run, "cpu", lambda: None, lambda _: None)["status"] == "failed", (
        "on a CPU nobody believes that"
    )


BREAKING = """
import os, sys
from fairtune.execution import run
from fairtune.execution.executors import worker
from fairtune.training.loop import TrainingRun
health, advance = run.DeviceHealth, TrainingRun.advance
def break_down(self):
    if os.environ["CUDA_VISIBLE_DEVICES"] == "0" and self.progress.step >= 12:
        raise RuntimeError("CUDA error: uncorrectable ECC error encountered")
    advance(self)
run.DeviceHealth, TrainingRun.advance = (lambda _: health("cuda:0")), break_down
sys.argv[1:] = ["cpu", "1"]
worker.main()
"""


@pytest.mark.usefixtures("nvml")
def test_a_study_goes_on_with_the_run_on_another_gpu_to_the_same_bits(
    toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", warm._dispatch)
    monkeypatch.setattr(local, "WORKER", (sys.executable, "-c", BREAKING))
    said: list[str] = []

    class Noting(QuietMonitor):
        def update(self, run: str, event: str, values: Mapping[str, Any]) -> None:
            said.extend([f"{run}: {values['text']}"] if event == "device_lost" else [])

    source = {**toy.source, "arms": {"baseline": {}}, "seeds": 1, "execution": {"checkpoint_every": 5}}
    plan = make_plan(load_study(source))
    outcome = run_plan(plan, tmp_path / "runs", Noting())
    assert (outcome.finished, outcome.failed) == (["baseline/seed-0"], {})
    assert said == [
        'baseline/seed-0: GPU 0 (NVIDIA A100-SXM4-40GB) has failed (CUDA says "uncorrectable ECC error") and is not used any more; '
        "baseline/seed-0 goes on elsewhere, from its last checkpoint"
    ]
    folder = tmp_path / "runs" / "toy" / "baseline" / "seed-0"
    resumed = [event["step"] for event in all_events(folder / "events.jsonl") if event["event"] == "resumed"]
    assert resumed == [0, 10]
    monkeypatch.undo()
    (plain,) = (make_job(plan, run, tmp_path / "plain") for run in plan.runs)
    assert perform_here(plain)["status"] == "finished"
    assert digests(folder) == digests(plain.run.path)
