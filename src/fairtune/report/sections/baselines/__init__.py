"""Simple baselines: what each is, what was chosen for it on validation, and what it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairtune.core.markdown import heading, plain, table
from fairtune.core.numbers import DASH, setting, significant, whole
from fairtune.report.content import ArmRow, Evidence, ReportContent, RunSpread
from fairtune.report.section import ReportSection

HEADS = ("arm", "n", "what it is", "chosen on validation", "features", "training examples", "seconds per run")
READING = (
    "Simple baselines are not fine-tuned: they are what a method has to beat to be worth its cost. They are fitted on the training "
    "examples alone; settings are chosen on validation by the study's metric. Their comparisons with the reference are corrected "
    "among themselves and cost the methods no power. Seconds are those of the runs, each at its own time; what an encoder makes of "
    "the texts is computed once and kept, so that one run of several pays for it."
)


@dataclass(frozen=True)
class SimpleBaseline:
    """One simple baseline over its finished runs.

    Args:
        what: in words.
        chosen: each different choice of the runs, with the seeds that made it.
        tried: settings that were tried in a run.
        features: numbers that it reads of a text; examples: that it was fitted on. Of the first run.
    """

    arm: str
    n: int
    what: str
    chosen: tuple[tuple[str, tuple[int, ...]], ...]
    tried: int
    features: int | None
    examples: int | None
    seconds: RunSpread | None

    @property
    def choices(self) -> str:
        """What was chosen, with the seeds where they differ."""
        if not self.chosen:
            return DASH
        if len(self.chosen) == 1:
            text = self.chosen[0][0]
            return f"{text} (of {self.tried} tried)" if self.tried else text or "nothing to choose"
        return "; ".join(f"{text} (seed {', '.join(map(str, seeds))})" for text, seeds in self.chosen)


def gather(evidence: Evidence) -> tuple[SimpleBaseline, ...] | None:
    found = tuple(_baseline(evidence, row) for row in evidence.rows if row.simple)
    return found or None


def _baseline(evidence: Evidence, row: ArmRow) -> SimpleBaseline:
    learner, runs = evidence.results.learner(row.arm), evidence.results.finished(row.arm)
    known = {run.seed: dict(run.result.get("learner") or {}) for run in runs}
    chosen: dict[str, list[int]] = {}
    for seed, facts in known.items():
        chosen.setdefault(choice_text(facts.get("chosen") or {}), []).append(seed)
    first = next(iter(known.values()), {})
    return SimpleBaseline(
        arm=row.arm,
        n=len(runs),
        what=learner.short if learner else "",
        chosen=tuple((text, tuple(seeds)) for text, seeds in chosen.items()),
        tried=len(first.get("tried") or ()),
        features=first.get("features"),
        examples=first.get("examples"),
        seconds=row.seconds.get("total"),
    )


def choice_text(chosen: Mapping[str, Any]) -> str:
    """Settings in a line: ngrams words 1-2, C 10."""
    return ", ".join(f"{name} {value if isinstance(value, str) else setting(value)}" for name, value in chosen.items())


def markdown(found: tuple[SimpleBaseline, ...], _: ReportContent) -> Iterator[str]:
    yield from heading("Simple baselines")
    yield from table(HEADS, [[plain(cell) for cell in cells(one)] for one in found])
    yield ""
    yield READING


def cells(one: SimpleBaseline) -> list[str]:
    spread = one.seconds
    seconds = DASH if spread is None else significant(spread.median)
    if spread is not None and spread.n > 1:
        seconds += f" ({significant(spread.low)} to {significant(spread.high)})"
    return [one.arm, str(one.n), one.what, one.choices, whole(one.features), whole(one.examples), seconds]


SECTION = ReportSection(
    __name__,
    gather,
    markdown,
    names=lambda *_: {"baseline_heads": HEADS, "baseline_cells": cells, "baseline_reading": READING},
    json=lambda found: {"baselines": found},
)
