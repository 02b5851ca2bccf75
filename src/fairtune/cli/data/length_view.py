"""Lengths in the terminal: percentiles, a histogram of text, and what each choice of `max_length` cuts and costs."""

from __future__ import annotations

import math

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairtune.tasks.card.lengths import (
    BATCH_SIZE,
    CHOICES,
    COVERAGE,
    PERCENTILES,
    REFERENCE,
    Choice,
    Cost,
    Lengths,
    auto_length,
)
from fairtune.tasks.tokens.counts import Counts

ROWS, BAR = 16, 46
"""Most rows of the histogram, and columns of its longest bar."""
MUCH = 1.5
"""Held-out examples that are truncated so many times as often are mentioned."""
EIGHTHS = " ▏▎▍▌▋▊▉"
WIDTHS = (1, 2, 3, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64, 80, 100)


def length_view(lengths: Lengths) -> Group:
    """The answer of `fairtune data lengths`; fits in 100 columns."""
    parts: list[RenderableType] = [
        Text.assemble(
            (lengths.task, "bold"), " with ", (lengths.model, "bold"), ": tokens per example, special tokens included"
        ),
        "",
        _percentiles(lengths),
        "",
        Text("Training examples by length", style="bold"),
        _histogram(lengths),
        "",
        Text("What each max_length cuts and costs", style="bold"),
        _choices(lengths),
        "",
        *(Text(line) for line in sentences(lengths)),
    ]
    return Group(*parts)


def sentences(lengths: Lengths) -> list[str]:
    """What to do, and how to read the costs."""
    share, most = percent(lengths.coverage), lengths.positions
    auto = auto_length(lengths.train, most)
    if most is not None and lengths.covering > most:
        covered = percent(1 - lengths.train.cut(most), 1)
        advice = f"{lengths.covering:,} tokens would cover {share}; the model takes {most}, which cover {covered}."
    else:
        advice = f"{lengths.covering:,} tokens cover {share} of the training examples."
    found = [f"{advice} `max_length: auto` takes {auto}."]
    ours, theirs = lengths.train.cut(auto), lengths.heldout.cut(auto)
    if theirs > MUCH * max(ours, 1 - COVERAGE):
        found.append(
            f"Mind: validation and test are longer than training; {auto} tokens truncate {percent(theirs, 1)} of them "
            f"(training {percent(ours, 1)}). {lengths.heldout.covering(COVERAGE):,} tokens cover {percent(COVERAGE)} of them."
        )
    flops = any(choice.grouped.flops is not None for choice in lengths.choices)
    found.append(
        f"Costs are beside max_length {REFERENCE}, grouped. Grouped: batches of {BATCH_SIZE} with similar lengths, which is how "
        "fairtune trains. Padded: every example filled up to max_length."
        + (" FLOPs: the layers' matrix products, from the model's sizes; attention's grow with the square." * flops)
    )
    return found


def percent(share: float, digits: int | None = None) -> str:
    """A share in words; one that is not quite none or all is never shown as that."""
    if digits is None:
        return f"{100 * share:.6g} %"
    least = 10.0**-digits
    if share > 0 and 100 * share < least / 2:
        return f"< {least:.{digits}f} %"
    if share < 1 and 100 * share > 100 - least / 2:
        return f"> {100 - least:.{digits}f} %"
    return f"{100 * share:.{digits}f} %"


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)


def _percentiles(lengths: Lengths) -> Table:
    table = _table()
    table.add_column("split", style="cyan", no_wrap=True)
    for head in ("examples", *(f"{share} %" for share in PERCENTILES), "longest"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, counts in (("training", lengths.train), ("validation and test", lengths.heldout)):
        found = [f"{counts.covering(share / 100):,}" for share in PERCENTILES]
        table.add_row(name, _number(counts), *found, f"{counts.longest:,}")
    return table


def _number(counts: Counts) -> str:
    return f"{counts.n:,} of {counts.rows:,}" if counts.sampled else f"{counts.n:,}"


def histogram(counts: Counts) -> list[tuple[int, int | None, int]]:
    """First length, last length and number of examples of each bin; the last bin is open where some are far longer."""
    most = max(1, counts.covering(0.99))
    scale = 10 ** max(0, math.floor(math.log10(most / ROWS / 10)) if most > 10 * ROWS else 0)
    width = next(width * scale for width in WIDTHS if width * scale * ROWS >= most)
    bins: list[tuple[int, int | None, int]] = []
    for first in range(1, most + 1, width):
        inside = (counts.lengths >= (0 if first == 1 else first)) & (counts.lengths < first + width)
        bins.append((first, first + width - 1, int(inside.sum())))
    while len(bins) > 1 and not bins[0][2]:
        del bins[0]
    end = int(bins[-1][1] or 0)
    if counts.longest > end:
        bins.append((end + 1, None, int((counts.lengths > end).sum())))
    return bins


def _histogram(lengths: Lengths) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True, min_width=9)
    table.add_column(no_wrap=True, style="blue")
    table.add_column(no_wrap=True)
    bins = histogram(lengths.train)
    tallest = max(count for *_, count in bins)
    marks = {length: str(length) for length in CHOICES}
    marks[lengths.covering] = f"{lengths.covering} covers {percent(lengths.coverage)}"
    for first, last, count in bins:
        label = f"{first:,} +" if last is None else f"{first:,}" if first == last else f"{first:,} - {last:,}"
        here = [text for length, text in sorted(marks.items()) if last is not None and first <= length <= last]
        facts = Text.assemble((f"{count:,}", "dim"), (f"  ◂ {', '.join(here)}" if here else "", "bold"))
        table.add_row(label, Text(_bar(count / tallest), style="blue"), facts)
    return table


def _bar(share: float) -> str:
    eighths = round(share * BAR * 8)
    if share > 0:
        eighths = max(1, eighths)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _choices(lengths: Lengths) -> Table:
    flops = lengths.choices[0].grouped.flops is not None
    table = _table()
    for head in ("\nmax_length", "truncated\ntraining", "truncated\nheld out", "tokens\nlost", "tokens\nan example"):
        table.add_column(head, justify="right", no_wrap=True)
    for group in ("grouped", "padded"):
        for measure in ("tokens", "FLOPs")[: 2 if flops else 1]:
            table.add_column(f"{group}\n{measure}", justify="right", no_wrap=True)
    for choice in lengths.choices:
        table.add_row(*_cells(choice, flops), style="bold" if choice.max_length == lengths.covering else None)
    for length in lengths.beyond:
        table.add_row(str(length), Text("beyond the model", style="dim"), style="dim")
    return table


def _cells(choice: Choice, flops: bool) -> list[str]:
    def costs(ratio: Cost) -> list[str]:
        return [times(ratio.tokens), *([times(ratio.flops)] if flops and ratio.flops is not None else [])]

    shares = [percent(share, 1) for share in (choice.truncated, choice.heldout_truncated, choice.lost)]
    return [
        f"{choice.max_length:,}",
        *shares,
        f"{choice.mean_tokens:,.1f}",
        *costs(choice.grouped),
        *costs(choice.padded),
    ]


def times(ratio: float) -> str:
    return f"{ratio:.2f} ×"
