"""Locks end with their process and keep others out; without them, or on a system that lacks them, everything goes on."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.warm import warm_run

from fairtune.core import locks
from fairtune.core.errors import Stopped
from fairtune.core.locks import is_locked, try_lock, wait_for_lock
from fairtune.ledger.folders import lock

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys, pathlib
from fairtune.core.locks import try_lock
with try_lock(pathlib.Path(sys.argv[1])) as ours:
    print(ours, flush=True)
    sys.stdin.read()
"""


def test_a_lock_of_another_process_is_seen_and_ends_when_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "True\n"
        assert is_locked(path)
        with try_lock(path) as ours:
            assert not ours

        def stop() -> None:
            raise Stopped

        with pytest.raises(Stopped), wait_for_lock(path, stop):
            pass
        holder.kill()
    assert not is_locked(path)
    with try_lock(path) as ours:
        assert ours


def test_a_lock_that_is_not_there_is_free_and_is_not_made_by_asking(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / ".lock")
    assert not (tmp_path / ".lock").exists()


def test_where_there_are_no_locks_everybody_gets_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object, **__: object) -> bool:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(locks, "lock_descriptor", lacking)
    with lock(tmp_path / ".lock", "taken"), try_lock(tmp_path / ".lock") as ours:
        assert ours
        assert not is_locked(tmp_path / ".lock")


ELSEWHERE = """
import os, sys

for name in list(sys.modules):  # of a warm process: what is ours is imported anew
    if name.split(".")[0] in ("fairtune", "tests"):
        del sys.modules[name]

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl",):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
for name in ("fcntl",):
    sys.modules.pop(name, None)
for name in ("sched_getaffinity", "process_cpu_count"):
    if hasattr(os, name):
        delattr(os, name)
"""


def test_everything_imports_and_a_study_runs_where_fcntl_and_affinity_are_missing(
    tmp_path: Path, tiny_model: Path, tiny_task: object
) -> None:
    """As on macOS (no `sched_getaffinity`) and Windows (no `fcntl`): `run`, `train` and `predict` work."""
    script = ELSEWHERE + textwrap.dedent(
        f"""
        import fairtune
        from fairtune.cli.app import app
        from typer.testing import CliRunner
        sys.path.insert(0, {str(ROOT)!r})
        from tests.conftest import performing_here

        task = {tiny_task.as_study()!r}  # type: ignore[attr-defined]
        study = dict(study="here", task=task, model={str(tiny_model)!r}, seeds=1, arms=["baseline"],
                     train=dict(steps=2, batch_size=4, max_length=16, lr=1e-3))
        with performing_here():  # a worker would be another process, which has the modules
            results = fairtune.run_study(study, runs={str(tmp_path / "runs")!r}, progress=False)
        assert not results.failures, results.failures
        out = {str(tmp_path / "trained")!r}
        for words in (["train", task["train"], "--model", {str(tiny_model)!r}, "--epochs", "1", "-o", out],
                      ["predict", out, task["test"], "--out", out + ".csv"]):
            answer = CliRunner().invoke(app, words)
            assert answer.exit_code == 0, answer.output
        """
    ).replace("  # type: ignore[attr-defined]", "")
    done = warm_run([sys.executable, "-c", script], text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "trained.csv").exists()
