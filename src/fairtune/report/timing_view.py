"""What a timing experiment shows, for the terminal: one row per arm, the A/A, a step taken apart, and what to make of it."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fairtune.analysis.timing_words import aa_sentence, effort_sentence, implausible_sentences, share_of_bound
from fairtune.analysis.timings import PARTS, StepRatio, StudyTiming
from fairtune.core.numbers import DASH, confidence, gigabytes, significant
from fairtune.ledger.timings import AGAIN

HEADS = ("arm\n  against", "s per\nstep", "ratio", "saves\n%", "speed-up", "gap,\nms per step", "bound", "peak\nGB")


def timing_view(timing: StudyTiming, wanted: float | None = None) -> Group:
    """Tables and sentences.

    Args:
        wanted: the precision that was asked for, if any.
    """
    sentences = [effort_sentence(timing, wanted), aa_sentence(timing), *implausible_sentences(timing)]
    sentences += share_of_bound(timing)
    sentences += [f"{line}" for line in timing.conditions.lines()]
    return Group(
        Text.assemble(("Time per optimizer step", "bold"), f", {confidence(timing.confidence)} intervals over rounds"),
        Text(),
        _ratios(timing),
        Text(),
        *_parts(timing),
        *(Text(sentence) for sentence in sentences),
    )


def _ratios(timing: StudyTiming) -> Table:
    table = _table(HEADS)
    for arm, time in timing.arms.items():
        found = timing.ratios.get(arm)
        memory = gigabytes(time.memory) if time.memory else DASH
        cells = _cells(found) if found else [DASH] * 5
        name = f"{arm}\n  {found.other}" if found else arm
        marked = f"{name}\n  implausible" if found and found.implausible else name
        table.add_row(*map(Text, (marked, significant(time.seconds), *cells, memory)))
    again = timing.again
    cells = [DASH, _interval(again.ratio, again.low, again.high, ".3f"), *[DASH] * 5]
    table.add_row(*map(Text, (f"{AGAIN}\n  {timing.reference}, twice", *cells)))
    return table


def _cells(found: StepRatio) -> list[str]:
    ratio, low, high = found.found.ratio, found.found.low, found.found.high
    gap, gap_low, gap_high = found.gap
    return [
        _interval(ratio, low, high, ".3f"),
        f"{100 * (1 - ratio):.1f}",
        f"{1 / ratio:.3f}x",
        _interval(1000 * gap, 1000 * gap_low, 1000 * gap_high, "+.3g"),
        DASH if found.bound is None else f"{found.bound:.3f}",
    ]


def _interval(middle: float, low: float, high: float, form: str) -> str:
    return f"{middle:{form}} [{low:{form}}, {high:{form}}]"


def _parts(timing: StudyTiming) -> Iterator[Table | Text]:
    taken = {arm: time for arm, time in timing.arms.items() if time.parts}
    if not taken:
        return
    table = _table(("ms of a step", *PARTS, "rest", "after an epoch, s"))
    for arm, time in taken.items():
        cells = [f"{1000 * time.parts.get(part, 0.0):.1f}" for part in (*PARTS, "rest")]
        table.add_row(*map(Text, (arm, *cells, f"{time.epoch_seconds:.1f}" if time.epoch_seconds else DASH)))
    yield table
    yield Text()


def _table(heads: tuple[str, ...]) -> Table:
    """The first column at the left, the others at the right."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
    for place, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if place else "left", overflow="fold", no_wrap=bool(place))
    return table
