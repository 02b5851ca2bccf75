"""Two runs side by side, for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from fairtune.analysis.fact_differences import FactDifference
from fairtune.analysis.run_pairs import CurvePair, PredictionPair, RunPair
from fairtune.analysis.scales import relative, scale_of
from fairtune.core.numbers import DASH, significant
from fairtune.report.terminal import shown
from fairtune.settings.metrics import METRICS, title_of

BARS = "▁▂▃▄▅▆▇█"
ROWS = 12
"""Steps of a curve that the terminal shows."""


def run_pair_json(found: RunPair) -> dict[str, Any]:
    """Everything, with the differences of scores (second less first)."""
    return {**asdict(found), "differences": score_differences(found)}


def score_differences(found: RunPair) -> dict[str, float]:
    """By metric, the second run's score less the first's; none where they are not of the same examples."""
    first, second = (run.scores for run in found.runs)
    return {name: second[name] - value for name, value in first.items() if found.predictions and name in second}


def run_pair_table(found: RunPair) -> Group:
    return Group(*_parts(found))


def _parts(found: RunPair) -> Iterator[Table | Text]:
    for letter, run in zip("AB", found.runs, strict=True):
        problem = f" ({run.problem})" if run.problem else ""
        facts = [
            f"{run.steps:,} steps" if run.steps else "",
            f"{run.seconds:,.0f} s" if run.seconds is not None else "",
        ]
        told = ", ".join([f"{run.status}{problem}", *filter(None, facts)])
        yield Text.assemble((f"{letter}  ", "bold"), shown(f"{run.name}: {told}"))
    yield Text()
    yield from _facts("Settings that differ", found.settings, "Settings: the same.")
    yield from _facts("Environments that differ", found.environment, "Environment: the same.")
    for curve in found.curves:
        yield from _curve(curve)
    yield from (Text(shown(f"Not compared: {reason}.")) for reason in found.untold)
    if found.predictions is not None:
        yield _scores(found)
        yield from _predictions(found.predictions)
    yield Text(shown(f"Weights: {found.weights}."))
    yield Text(shown(found.note))


def _facts(title: str, differences: Sequence[FactDifference], otherwise: str) -> Iterator[Table | Text]:
    if not differences:
        yield Text(otherwise)
        return
    made = Table(box=None, padding=(0, 2, 0, 0))
    for head in (title, "A", "B"):
        made.add_column(head, overflow="fold")
    for one in differences:
        made.add_row(*(Text(shown(cell)) for cell in (one.name, *one.values)))
    yield made
    yield Text()


def _curve(curve: CurvePair) -> Iterator[Table | Text]:
    made = Table(box=None, padding=(0, 2, 0, 0))
    made.add_column("step", justify="right")
    for head in (f"A {curve.name}", "B"):
        made.add_column(Text(shown(head)), justify="right")
    every = -(-len(curve.points) // ROWS)
    kept = [point for place, point in enumerate(curve.points) if (len(curve.points) - 1 - place) % every == 0]
    for step, ours, theirs in kept:
        made.add_row(f"{step:,}", *(DASH if value is None else significant(value) for value in (ours, theirs)))
    yield made
    for letter, bars in zip("AB", sparklines(curve), strict=True):
        yield Text(f"  {letter} {bars}")
    if not curve.alike:
        yield Text("  Other methods may train by another loss: these two need not be on one scale.")
    yield Text()


def sparklines(curve: CurvePair) -> tuple[str, str]:
    """Both curves in bars, of one scale where they are alike; a space where a run has no point."""
    sides = [[point[1] for point in curve.points], [point[2] for point in curve.points]]
    both = [value for side in sides for value in side]
    ours, theirs = (_bars(side, both if curve.alike else side) for side in sides)
    return ours, theirs


def _bars(side: Sequence[float | None], scale: Sequence[float | None]) -> str:
    known = [value for value in scale if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    step = (high - low) / (len(BARS) - 1) or 1.0
    return "".join(" " if value is None else BARS[round((value - low) / step)] for value in side)


def _scores(found: RunPair) -> Table:
    made = Table(box=None, padding=(0, 2, 0, 0))
    made.add_column("test score")
    for head in ("A", "B", "B less A"):
        made.add_column(head, justify="right")
    own = {name: (*(run.scores[name] for run in found.runs), less) for name, less in score_differences(found).items()}
    for name in sorted(own, key=lambda one: one != found.metric):
        first, second, less = own[name]
        if name not in METRICS:
            made.add_row(Text(shown(title_of(name))), significant(first), significant(second), significant(less))
            continue
        scale = scale_of(name)
        gap = relative(less, first) if scale.plain else scale.signed(less)
        made.add_row(Text(shown(scale.heading)), shown(scale.value(first)), shown(scale.value(second)), shown(gap))
    return made


def _predictions(found: PredictionPair) -> Iterator[Table | Text]:
    yield Text()
    yield Text(shown(prediction_sentence(found)))
    for one in found.examples:
        texts = f"  {' | '.join(' '.join(text.split()) for text in one.texts)}" if one.texts else ""
        yield Text(shown(f"  {one.id}: {one.label}; A {one.answers[0]}, B {one.answers[1]}{texts}"))
    if found.differing > len(found.examples):
        yield Text(f"  ... and {found.differing - len(found.examples):,} more")


def prediction_sentence(found: PredictionPair) -> str:
    """How far two runs agree, in a sentence."""
    if not found.differing:
        same = "and all scores are the same to the bit" if found.same_scores else "though scores differ"
        if found.unit == "document":
            return f"Predictions: all {found.n:,} documents have the same loss."
        return f"Predictions: the same class for all {found.n:,} examples, {same}."
    share = f"{found.differing:,} of {found.n:,} {found.unit}s ({100 * found.differing / found.n:.1f} %)"
    if found.unit == "document":
        return (
            f"Predictions: {share} have another loss; A is lower on {found.first_right:,}, B on {found.second_right:,}."
        )
    return (
        f"Predictions: {share} get another class. Both right {found.both_right:,}, only A {found.first_right:,}, "
        f"only B {found.second_right:,}, both wrong {found.both_wrong:,}."
    )
