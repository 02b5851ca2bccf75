"""A study at one moment: its plan, the rows of its runs and its workers' signs, and what follows from them alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairtune.analysis.scales import scale_of
from fairtune.core.printable import printable
from fairtune.ledger.scan import RunRow
from fairtune.ledger.seals import DAMAGED, FAILED, FINISHED, INTERRUPTED, RUNNING, WAITING
from fairtune.ledger.worker_signs import SeenSign, WorkerSign

SHOWN = 100
"""Runs of each kind that a view lists; its counts have them all."""


@dataclass(frozen=True)
class StudyMoment:
    """All that is read of a study to show it once.

    Args:
        rows: in the plan's order.
        at_work: workers that are, by the run that each works on.
        held: a process runs the study.
        usual: seconds that a run of each arm took.
    """

    study: str
    plan: dict[str, Any]
    rows: list[RunRow]
    planned: dict[tuple[str, int], dict[str, Any]]
    signs: list[SeenSign]
    at_work: dict[str, WorkerSign]
    held: bool
    usual: dict[str, float]
    counts: Counter[str]


def begun(row: RunRow, at_work: Mapping[str, WorkerSign]) -> RunRow:
    """A run that a worker has been given is under way, also before it has left anything on record."""
    given = row.status in (WAITING, INTERRUPTED) and f"{row.arm}/seed-{row.seed}" in at_work
    return replace(row, status=RUNNING) if given else row


def listed_runs(rows: Sequence[RunRow]) -> list[tuple[int, RunRow]]:
    """The runs that a view lists, each with its place in the plan: under way, in trouble, the latest that ended, the next."""
    by_state: dict[str, list[tuple[int, RunRow]]] = {}
    for place, row in enumerate(rows):
        by_state.setdefault(row.status, []).append((place, row))
    trouble = [*by_state.get(FAILED, []), *by_state.get(DAMAGED, []), *by_state.get(INTERRUPTED, [])]
    return [
        *by_state.get(RUNNING, [])[:SHOWN],
        *sorted(trouble, key=lambda one: one[0])[:SHOWN],
        *by_state.get(FINISHED, [])[-SHOWN:][::-1],
        *by_state.get(WAITING, [])[:SHOWN],
    ]


def state_of(counts: Counter[str], at_work: bool) -> str:
    to_come = counts[WAITING] + counts[INTERRUPTED] + counts[RUNNING]
    if at_work or counts[RUNNING]:
        return "running"
    if not to_come:
        return "finished"
    return "planned" if to_come == counts[WAITING] == counts.total() else "stopped"


def about_study(plan: Mapping[str, Any]) -> str:
    task, model, metric = plan["task"], plan.get("model") or {}, plan["task"].get("metric")
    words = [task.get("name"), model.get("name"), scale_of(metric).title if isinstance(metric, str) else None]
    return ", ".join(printable(str(word)) for word in words if word)


def metric_of(plan: Mapping[str, Any]) -> str | None:
    found = plan["task"].get("metric")
    return found if isinstance(found, str) else None


def primary_of(plan: Mapping[str, Any], arm: str) -> str | None:
    own = plan["arms"].get(arm) or {}
    found = own.get("primary") or own.get("control") or plan["compare"].get("to")
    return found if isinstance(found, str) else None
