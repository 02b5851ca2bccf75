"""`fairtune data lengths`: how long a task's examples are in a model's tokens, and which `max_length` that suggests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtune.cli.command import (
    AsJson,
    console,
    print_json,
    report_errors,
)
from fairtune.cli.options import read_task
from fairtune.core.console import Console
from fairtune.core.errors import DataError, one_of
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import tokenizer_folder
from fairtune.monitor.stage_view import show_stages
from fairtune.tasks import load_task
from fairtune.tasks.card.lengths import COVERAGE, check_coverage, measure_lengths

PICTURES = (".png", ".svg")
TaskName = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="A task of the catalogue, or your files, such as '{train: a.csv, text: title}'.",
        show_default=False,
    ),
]
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
    check_coverage(coverage)
    if output is not None:
        _check_picture(output)
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
    from fairtune.cli.data.length_view import length_view

    console().print(length_view(found))
    if output is not None:
        console().print(f"\nPicture: {output}", soft_wrap=True)


def _check_picture(file: Path) -> None:
    """Refuse a place that cannot be drawn to, before any work is done."""
    if file.suffix.lower() not in PICTURES:
        raise DataError(
            f"-o {file}: found '{file.suffix or file.name}'; name the picture with one of {one_of(PICTURES)}."
        )
    if file.is_dir():
        raise DataError(f"-o {file}: that is a folder; name a file.")
    if not file.parent.is_dir():
        raise DataError(f"-o {file}: there is no folder {file.parent}; make it first.")
