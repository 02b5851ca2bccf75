"""`fairtune data card`: what a task's data is like, before anything is trained on it."""

from __future__ import annotations

from typing import Annotated

import typer

from fairtune.cli.command import AsJson, console, print_json, report_errors
from fairtune.cli.options import read_task
from fairtune.monitor.stage_view import show_stages

TaskName = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="A task of the catalogue, or your files, such as '{train: a.csv, test: b.csv, text: title}'.",
        show_default=False,
    ),
]
TrainOn = Annotated[
    str | None,
    typer.Option(
        "--train-on", metavar="TASK", help="The task whose training split is used instead.", show_default=False
    ),
]
Dedupe = Annotated[bool, typer.Option("--dedupe", help="Show the data as `dedupe: true` makes it.")]


@report_errors
@show_stages(lines=False)
def card(task: TaskName, train_on: TrainOn = None, dedupe: Dedupe = False, as_json: AsJson = False) -> None:
    """Show rows, balance, duplicates, contradictory labels, texts that splits share, lengths and languages of a task."""
    chosen = read_task(task, called="TASK")
    from fairtune.tasks.card.builder import card_of

    found = card_of(chosen, train_on, dedupe)
    if as_json:
        print_json(found.as_json())
        return
    from fairtune.report.sections.data.view import data_view

    console().print(data_view(found))
