"""What Windows and macOS lack is missed nowhere: a study runs, is stopped with its state saved, and goes on, without it.

Tested by hiding, see tests/elsewhere.py; neither system itself has seen these tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import fairtune
from fairtune.core.errors import Stopped
from fairtune.core.files import read_regular
from fairtune.core.folders import write_folder
from fairtune.execution.executors import local
from fairtune.execution.executors.local import LocalExecutor
from fairtune.execution.study_run import run_plan
from fairtune.ledger.events import all_events
from fairtune.models.tokenizers import load_tokenizer
from fairtune.monitor.terminal import QuietMonitor
from fairtune.settings.execution import Execution
from fairtune.study.plan import Plan, make_plan
from fairtune.study.study_file import load_study
from fairtune.tasks.task import Split
from fairtune.tasks.tokens.encoded_splits import encode
from tests import elsewhere, warm
from tests.execution.conftest import ToyStudy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="acts another system with the help of /proc")
DEAF = 'import time; print(\'{"type": "ready"}\', flush=True); time.sleep(600)'


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This process and its workers are elsewhere, with a cache of their own; terminating a process kills it."""
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(subprocess, "Popen", warm._dispatch)
    monkeypatch.setattr(warm.WarmPopen, "terminate", warm.WarmPopen.kill)
    monkeypatch.setattr(local, "WORKER", elsewhere.WORKER)
    elsewhere.hide(monkeypatch.setattr)


class Interrupting(QuietMonitor):
    """Ctrl-C as soon as something of a kind happens."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def update(self, run: str, kind: str, values: Any) -> None:  # noqa: ARG002
        if kind == self._kind and values.get("phase", "train") == "train":
            raise KeyboardInterrupt


def readers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("fairtune")]


def plan_of(toy: ToyStudy) -> Plan:
    """One run, long enough not to be over before it is interrupted."""
    train = toy.source["train"] | {"epochs": 6, "evaluate": 39}
    return make_plan(load_study({**toy.source, "train": train, "arms": {"baseline": {}}, "seeds": 1}))


@pytest.mark.usefixtures("away")
def test_a_study_is_stopped_with_its_state_saved_and_goes_on(toy: ToyStudy, tmp_path: Path) -> None:
    runs, events = tmp_path / "runs", tmp_path / "runs" / "toy" / "baseline" / "seed-0" / "events.jsonl"
    with pytest.raises(Stopped):
        run_plan(plan_of(toy), runs, Interrupting("progress"))
    assert not readers()
    done = [event["unit"] for event in all_events(events) if event["event"] == "step"]
    outcome = run_plan(plan_of(toy), runs, QuietMonitor())
    assert outcome.finished == ["baseline/seed-0"], outcome.failed
    assert not readers()
    *_, resumed = [event for event in all_events(events) if event["event"] == "resumed"]
    assert resumed["unit"] > done[-1], "the last step before the interruption was saved"
    assert b"\r" not in events.read_bytes()
    assert not list((tmp_path / "cache").rglob("*.writing")), "nothing could not be deleted"


@pytest.mark.usefixtures("away")
def test_a_worker_that_hears_nothing_is_killed(toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "STOP_SECONDS", 0.2)
    monkeypatch.setattr(local, "END_SECONDS", 2.0)
    monkeypatch.setattr(local, "WORKER", (sys.executable, "-c", DEAF))
    executor = LocalExecutor(Execution(devices=("cpu",)), tmp_path / "logs")
    executor.submit([toy.job("runs")])
    assert next(executor.events()).type == "ready"
    (worker,) = executor._workers
    executor.stop()
    assert worker.process.poll() is not None
    assert not psutil.pid_exists(worker.process.pid)
    assert not readers()


def test_texts_become_the_same_tokens_and_leave_no_file(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = load_tokenizer(tiny_model)
    split = Split.of(("a", "b"), (("a good film", "bad"), ("a", "the plot")), np.array([0, 1]))
    usual = encode(split, tokenizer, 12)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    elsewhere.hide(monkeypatch.setattr)
    found = encode(split, tokenizer, 12)
    assert not list(tmp_path.iterdir())
    assert found.tokens.tolist() == usual.tokens.tolist()
    assert found.types is not None
    assert usual.types is not None
    assert found.types.tolist() == usual.types.tolist()
    assert (found.ids, found.labels.tolist()) == (usual.ids, usual.labels.tolist())


def test_a_folder_is_put_on_the_disk_and_a_file_is_read_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere.hide(monkeypatch.setattr)
    with write_folder(tmp_path / "whole") as aside:
        (aside / "in").mkdir()
        (aside / "in" / "file").write_bytes(b"a\r\nb")
    assert read_regular(tmp_path / "whole" / "in" / "file", 10) == b"a\r\nb"


def test_no_module_is_imported_that_another_system_lacks() -> None:
    """Nor `select` and `selectors`, which take nothing but sockets on Windows."""
    lacking = re.compile(
        r"^\s*(?:import|from) (fcntl|grp|msvcrt|pty|pwd|resource|select|selectors|termios|tty)\b", re.M
    )
    files = Path(fairtune.__file__).parent.rglob("*.py")
    assert not [str(file) for file in files if lacking.search(file.read_text(encoding="utf-8"))]
