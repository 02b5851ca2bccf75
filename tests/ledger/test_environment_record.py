"""What a run ran on: enough to explain a difference, nothing about who ran it."""

from __future__ import annotations

import getpass
import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path

import pytest
from tests.fake_nvml import GB, FakeNvml, use_fake

from fairtune.ledger.environment import capture_environment, capture_load, gpus


def test_versions_hardware_and_load_are_listed() -> None:
    import torch

    found = capture_environment("cpu")
    assert json.loads(json.dumps(found)) == found
    assert found["packages"]["torch"] == metadata.version("torch") == torch.__version__
    assert found["packages"]["transformers"] == metadata.version("transformers")
    assert found["python"] == platform.python_version()
    assert found["cores"]["logical"] >= 1
    assert found["memory_bytes"] > 2**28
    assert found["device"] == "cpu"
    assert found["torch"]["threads"] == torch.get_num_threads()
    assert len(found["load"]["load_average"]) == 3
    assert found["load"]["memory_available_bytes"] > 0


def test_the_git_commit_of_the_folder_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    git = capture_environment("cpu")["git"]
    if git is not None:  # an installed copy of the tests has no commit
        assert len(git["commit"]) == 40
        assert isinstance(git["clean"], bool)
    monkeypatch.chdir(tmp_path)
    assert capture_environment("cpu")["git"] is None


def test_nobody_and_no_machine_is_named() -> None:
    text = json.dumps(capture_environment("cpu"))
    assert platform.node()
    assert f'"{platform.node()}"' not in text
    assert f"{Path.home()}/" not in text
    assert str(Path.cwd()) not in text
    assert f'"{getpass.getuser()}"' not in text
    keys = set(json.loads(text))
    assert not keys & {"host", "hostname", "user", "cwd", "argv", "environ"}


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = use_fake(monkeypatch, cards=2)
    fake.cards[1].processes = {os.getpid(): GB, 1: GB}
    fake.cards[1].utilisation = 10
    return fake


def test_gpus_are_described_with_everything_that_may_disturb_a_run(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    first, second = gpus()
    assert first == {
        "index": 0,
        "name": "NVIDIA A100-SXM4-40GB",
        "driver": "550.1",
        "temperature": 40,
        "utilisation": 0,
        "clock_mhz": 1410,
        "slowed": [],
        "memory_used_bytes": GB,
        "memory_bytes": 40 * GB,
        "other_processes": 0,
        "visible": False,
    }
    assert (second["visible"], second["utilisation"], second["other_processes"]) == (True, 10, 1)
    assert capture_load()["gpus"] == [first, second]
    assert nvml.open == 0, "NVML is shut down again"


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        ("nvmlDeviceGetName", ["name"]),
        ("nvmlDeviceGetTemperature", ["temperature"]),
        ("nvmlDeviceGetUtilizationRates", ["utilisation"]),
        ("nvmlDeviceGetMemoryInfo", ["memory_used_bytes", "memory_bytes"]),
        ("nvmlDeviceGetComputeRunningProcesses", ["other_processes"]),
    ],
)
def test_a_question_a_gpu_does_not_answer_is_unknown_and_the_rest_is_reported(
    nvml: FakeNvml, question: str, fields: list[str]
) -> None:
    nvml.deaf = {question}
    found = gpus()
    assert len(found) == 2
    for gpu in found:
        assert {key for key, value in gpu.items() if value is None} == set(fields)


@pytest.mark.parametrize("question", ["nvmlInit", "nvmlSystemGetDriverVersion", "nvmlDeviceGetCount"])
def test_a_driver_that_fails_is_no_gpu(nvml: FakeNvml, question: str) -> None:
    nvml.deaf = {question}
    assert gpus() == []
    assert nvml.open == 0


def test_without_the_library_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpus() == []
