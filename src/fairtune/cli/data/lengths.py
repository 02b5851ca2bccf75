"""`fairtune data lengths`: how long a task's examples are in a model's tokens, and which `max_length` that suggests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fairtune.cli.command import AsJson, console, print_json, report_errors
from fairtune.cli.data.card import TaskName
from fairtune.cli.options import read_task
from fairtune.core.console import Console
from fairtune.core.errors import DataError, one_of
from fairtune.core.numbers import as_percent
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import tokenizer_folder
from fairtune.monitor.stage_view import show_stages
from fairtune.tasks import load_task
from fairtune.tasks.card.lengths import (
    BATCH_SIZE,
    COVERAGE,
    PERCENTILES,
    REFERENCE,
    Lengths,
    auto_length,
    measure_lengths,
)

PICTURES = (".png", ".svg")
MUCH = 1.5
"""Held-out examples that are truncated so many times as often are mentioned."""
ModelName = Annotated[
    str,
    typer.Option(
        "--model", metavar="M", help="The model whose tokens count: minilm, a folder, or a hub id.", show_default=False
    ),
]
Coverage = Annotated[
    float,
    typer.Option("--coverage", metavar="SHARE", help="The share of training examples that must not be truncated."),
]
Picture = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Also draw a picture, .png or .svg.", show_default=False),
]


@report_errors
@show_stages(lines=False)
def lengths(
    task: TaskName, model: ModelName, coverage: Coverage = COVERAGE, output: Picture = None, as_json: AsJson = False
) -> None:
    """Show how long a task's examples are in tokens, and what each max_length cuts and costs.

    The smallest length that covers 95 % of the training examples is what `max_length: auto` takes in a study.
    """
    if not 0 < coverage <= 1:
        raise DataError(f"coverage: found {coverage:g}; allowed: a share above 0 and up to 1, such as {COVERAGE:g}.")
    if output is not None and output.suffix.lower() not in PICTURES:
        raise DataError(
            f"-o {output}: found '{output.suffix or output.name}'; name the picture with one of {one_of(PICTURES)}."
        )
    source, chosen = find_model(model), read_task(task, "TASK")
    with Console(stderr=True).status("Counting tokens; the next time they are known ..."):
        data, source = load_task(chosen), source.fetched()
        found = measure_lengths(
            data, source.name, source.positions, tokenizer_folder(Path(str(source.folder))), coverage
        )
    if output is not None:
        from fairtune.cli.data.length_figure import save_length_figure

        save_length_figure(found, output)
    if as_json:
        print_json({**found.as_json(), "picture": None if output is None else str(output)})
        return
    console().print(length_view(found))
    if output is not None:
        console().print(f"\nPicture: {output}", soft_wrap=True)


def length_view(found: Lengths) -> Group:
    """The answer in the terminal; fits in 100 columns."""
    return Group(
        Text(f"{found.task} with {found.model}: tokens per example, special tokens included"),
        "",
        _percentiles(found),
        "",
        Text("What each max_length cuts and costs", style="bold"),
        _choices(found),
        "",
        *map(Text, _sentences(found)),
    )


def _sentences(found: Lengths) -> list[str]:
    """What to do, and how to read the costs."""
    share, most = f"{100 * found.coverage:.6g} %", found.positions
    auto = auto_length(found.train, most)
    if most is not None and found.covering > most:
        covered = as_percent(1 - found.train.cut(most))
        advice = f"{found.covering:,} tokens would cover {share}; the model takes {most}, which cover {covered}."
    else:
        advice = f"{found.covering:,} tokens cover {share} of the training examples."
    lines = [f"{advice} `max_length: auto` takes {auto}."]
    ours, theirs = found.train.cut(auto), found.heldout.cut(auto)
    if theirs > MUCH * max(ours, 1 - COVERAGE):
        lines.append(
            f"Caution: validation and test are longer than training; {auto} tokens truncate {as_percent(theirs)} of them "
            f"(training {as_percent(ours)}). {found.heldout.covering(COVERAGE):,} tokens cover {100 * COVERAGE:g} % of them."
        )
    lines.append(
        f"The cost is an epoch's tokens, padding included, in batches of {BATCH_SIZE} with similar lengths, which is how fairtune "
        f"trains; with max_length {REFERENCE} it is 1."
    )
    return lines


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _percentiles(found: Lengths) -> Table:
    table = _table("split", "examples", *(f"{share} %" for share in PERCENTILES), "longest")
    table.columns[0].justify, table.columns[0].style = "left", "cyan"
    for name, counts in (("training", found.train), ("validation and test", found.heldout)):
        number = f"{counts.n:,} of {counts.rows:,}" if counts.sampled else f"{counts.n:,}"
        lengths = [f"{counts.covering(share / 100):,}" for share in PERCENTILES]
        table.add_row(name, number, *lengths, f"{counts.longest:,}")
    return table


def _choices(found: Lengths) -> Table:
    table = _table(
        "\nmax_length", "truncated\ntraining", "truncated\nheld out", "tokens\nlost", "tokens\nan example", "\ncost"
    )
    for choice in found.choices:
        shares = [as_percent(share) for share in (choice.truncated, choice.heldout_truncated, choice.lost)]
        style = "bold" if choice.max_length == found.covering else None
        table.add_row(
            f"{choice.max_length:,}", *shares, f"{choice.mean_tokens:,.1f}", f"{choice.cost:.2f} ×", style=style
        )
    for length in found.beyond:
        table.add_row(str(length), "beyond the model", style="dim")
    return table
