"""What a run ran on: enough to explain a difference, nothing about who ran it."""

from __future__ import annotations

import getpass
import json
import os
import platform
from importlib import metadata
from pathlib import Path

import pytest
from tests.fake_nvml import GB, FakeNvml, use_fake

from fairtune.ledger.environment import capture_environment, gpus


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


@pytest.mark.parametrize("question", ["nvmlInit", "nvmlSystemGetDriverVersion", "nvmlDeviceGetCount"])
def test_a_driver_that_fails_is_no_gpu(nvml: FakeNvml, question: str) -> None:
    nvml.deaf = {question}
    assert gpus() == []
    assert nvml.open == 0
