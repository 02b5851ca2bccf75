"""What the machine offers, also where the system has no call for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from fairtune.core import machine
from fairtune.core.machine import PATIENT, available_cores, available_memory, wait_asleep


@pytest.fixture(autouse=True)
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Control groups of our own, without limits at first; this process is in `inner`, which is in `outer`."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    monkeypatch.setattr(machine, "CGROUPS", tmp_path)
    monkeypatch.setattr(machine, "_groups", lambda: iter([inner, inner.parent]))
    return inner


@pytest.mark.parametrize(
    ("inner", "outer", "cores"),
    [("max 100000", "max 100000", 8), ("250000 100000", "max 100000", 2), ("max 100000", "50000 100000", 1)],
)
def test_a_containers_share_of_the_processors_counts(
    groups: Path, monkeypatch: pytest.MonkeyPatch, inner: str, outer: str, cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    (groups / "cpu.max").write_text(inner + "\n")
    (groups.parent / "cpu.max").write_text(outer + "\n")
    assert available_cores() == cores


def test_a_containers_memory_counts_without_the_files_that_are_only_kept(groups: Path) -> None:
    free = available_memory()
    (groups / "memory.max").write_text("5000\n")
    (groups / "memory.current").write_text("4000\n")
    (groups / "memory.stat").write_text("anon 3300\ninactive_file 700\n")
    assert available_memory() == 1700 < free
    (groups / "memory.max").write_text("max\n")
    assert available_memory() > 1700


@pytest.mark.parametrize(("given", "torch_is_there"), [({}, False), ({"GOMP_SPINCOUNT": "5"}, False), ({}, True)])
def test_threads_wait_asleep_unless_it_is_too_late_or_the_user_said_how(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], torch_is_there: bool
) -> None:
    environment = dict(given)
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr(sys, "modules", {"torch": object()} if torch_is_there else {})
    wait_asleep()
    assert environment == (given if given or torch_is_there else PATIENT)
