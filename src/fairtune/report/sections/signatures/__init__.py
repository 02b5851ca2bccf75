"""Signatures: every planned run, how it ended, and what exactly was run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairtune.core.markdown import fenced, heading, one_line
from fairtune.report.content import Evidence, ReportContent
from fairtune.report.section import ReportSection


@dataclass(frozen=True)
class RunLine:
    """A planned run and how it ended; the signature says what exactly was run."""

    position: int
    arm: str
    seed: int
    status: str
    signature: str


def gather(evidence: Evidence) -> tuple[RunLine, ...]:
    results = evidence.results
    return tuple(
        RunLine(run.position, run.arm, run.seed, run.status, str(run.result.get("signature") or planned["signature"]))
        for run, planned in zip(results.runs, results.plan["runs"], strict=True)
    )


def markdown(runs: tuple[RunLine, ...], _: ReportContent) -> Iterator[str]:
    yield from heading("Signatures")
    yield from fenced((f"{run.status:<11} {one_line(run.signature)}" for run in runs), "text")


SECTION = ReportSection(__name__, gather, markdown, json=lambda runs: {"runs": runs}, folded=True)
