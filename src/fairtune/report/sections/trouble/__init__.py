"""Failures and exclusions: everything that went wrong or was left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fairtune.analysis.results import LedgerRun
from fairtune.core.markdown import heading, items, plain
from fairtune.report.content import Evidence, ReportContent
from fairtune.report.section import ReportSection


@dataclass(frozen=True)
class Troubles:
    """What went wrong.

    Args:
        failures, unfinished: by run, the reason or the status.
        retried: attempts that failed before a run finished.
        exclusions: runs on disk that are not counted, and why.
    """

    failures: dict[str, str]
    retried: tuple[str, ...]
    unfinished: dict[str, str]
    exclusions: tuple[str, ...]
    warnings: tuple[str, ...]


def gather_troubles(evidence: Evidence) -> Troubles:
    results = evidence.results
    return Troubles(
        failures=results.failures,
        retried=tuple(_event_texts(results.runs, "failed", "reason", only="finished")),
        unfinished={
            _name(run): run.status for run in results.runs if run.status not in ("finished", "failed", "damaged")
        },
        exclusions=tuple(results.exclusions),
        warnings=tuple(dict.fromkeys(_event_texts(results.runs, "warning", "text"))),  # one step done again warns again
    )


def _event_texts(runs: list[LedgerRun], event: str, field: str, only: str | None = None) -> Iterable[str]:
    """What the runs' events of one type say, each with its run's name."""
    for run in runs:
        if run.begun and only in (None, run.status):
            yield from (f"{_name(run)}: {e.get(field)}" for e in run.events_of(event))


def _name(run: LedgerRun) -> str:
    return f"{run.arm}/seed-{run.seed}"


def markdown(troubles: Troubles, _: ReportContent) -> Iterator[str]:
    yield from heading("Failures and exclusions")
    yield from items(map(plain, trouble_lines(troubles)), "None: every planned run finished, and none was left out.")


def trouble_lines(troubles: Troubles) -> list[str]:
    """Everything that went wrong or was left out, one line each."""
    return [
        *(f"failed: {name}: {reason}" for name, reason in troubles.failures.items()),
        *(f"not finished: {name}: {status}" for name, status in troubles.unfinished.items()),
        *(f"failed before, then finished: {text}" for text in troubles.retried),
        *(f"left out: {text}" for text in troubles.exclusions),
        *(f"warning: {text}" for text in troubles.warnings),
    ]


SECTION = ReportSection(__name__, gather_troubles, markdown, json=vars)
