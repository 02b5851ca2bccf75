"""Locks end with their process and keep others out; without them everything goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairtune.core import locks
from fairtune.core.errors import LedgerError, Stopped
from fairtune.core.locks import is_locked, wait_for_lock
from fairtune.ledger.folders import lock

HOLDER = """
import sys, pathlib
from fairtune.ledger.folders import lock
with lock(pathlib.Path(sys.argv[1]), "taken"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_of_another_process_is_seen_and_ends_when_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        assert is_locked(path)
        with pytest.raises(LedgerError, match="taken"), lock(path, "taken"):
            pass

        def stop() -> None:
            raise Stopped

        with pytest.raises(Stopped), wait_for_lock(path, stop):
            pass
        holder.kill()
    assert not is_locked(path)
    with lock(path, "taken"):
        assert is_locked(path)


def test_a_lock_that_is_not_there_is_free_and_is_not_made_by_asking(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / ".lock")
    assert not (tmp_path / ".lock").exists()


def test_where_there_are_no_locks_everybody_gets_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object, **__: object) -> bool:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(locks.fcntl, "flock", lacking)
    with lock(tmp_path / ".lock", "taken"), lock(tmp_path / ".lock", "taken"):
        assert not is_locked(tmp_path / ".lock")
