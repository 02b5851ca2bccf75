"""`fairtune tasks`: the catalogue, with what each task is and where its data would come from here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from fairtune.cli.command import AsJson, console, print_json, report_errors
from fairtune.core.errors import FairtuneError, one_of
from fairtune.tasks.catalogue import unknown
from fairtune.tasks.definitions import ALIASES, LANGUAGES, family_of
from fairtune.tasks.descriptions import LANGUAGE_MODEL, Description, descriptions

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="A task, or `xnli` for all its languages; all tasks if absent.", show_default=False
    ),
]
ROLES = {"train": "trains", "validation": "selects", "test": "is reported"}
WIDTHS = (31, 14, 14, 14, 14)


@report_errors
def tasks(name: Name = None, as_json: AsJson = False) -> None:
    """Show the tasks by name: size, metric, licence, where the data would come from here, and what is missing."""
    every = descriptions()
    chosen = every if name is None else _named(name, every)
    if as_json:
        print_json({"tasks": {task.name: task.as_json() for task in chosen}})
    elif len(chosen) == 1:
        _show_one(chosen[0])
    else:
        _show_all(chosen, short=name is None)


def _named(name: str, every: Sequence[Description]) -> list[Description]:
    wanted = ALIASES.get(name, name)
    found = [task for task in every if wanted in (task.name, family_of(task.name), task.name.partition("/")[0])]
    exact = [task for task in found if task.name == wanted]
    if not found:
        raise FairtuneError(f"task '{name}': {unknown(name)}")
    return exact or found


def _show_all(chosen: Sequence[Description], short: bool) -> None:
    """Two lines per task; in the short list the languages of a task go by one name."""
    out = console()
    out.print(
        Text(_columns("task", "kind, classes", "train", "validation", "test", "metric"), style="bold"), soft_wrap=True
    )
    families: dict[str, list[Description]] = {}
    for task in chosen:
        families.setdefault(family_of(task.name) if short else task.name, []).append(task)
    for called, (task, *others) in families.items():
        kind = f"{task.kind}, {len(task.labels)}" if task.labels else task.kind
        line = Text(_columns(called, kind, *(str(task.uses[role]) for role in ROLES), task.metric))
        line.stylize("cyan", 0, len(called))
        out.print(line, soft_wrap=True)
        out.print(Text(f"  {task.source}; licence: {task.licence}", style="dim"), soft_wrap=True)
        if missing := [one.missing for one in (task, *others) if one.missing]:
            more = f" (and likewise for {len(missing) - 1} other languages)" if missing[1:] else ""
            out.print(Text(f"  missing: {missing[0]}{more}", style="yellow"), soft_wrap=True)
    out.print()
    if short:
        out.print(Text(f"Languages: {one_of(LANGUAGES)}."))
    out.print(Text("`fairtune tasks NAME` shows everything about one; in a study: `task: NAME`, or your own files."))


def _columns(*cells: str) -> str:
    *padded, last = cells
    return "".join(f"{cell:<{width}} " for cell, width in zip(padded, WIDTHS, strict=True)) + last


def _show_one(task: Description) -> None:
    out = console()
    out.print(Text.assemble((task.name, "bold"), "  ", (task.kind, "dim")))
    out.print(Text(task.about))
    labels = one_of(f"{number} {label}" for number, label in enumerate(task.labels))
    facts = {
        "columns": one_of([*task.columns, *([f"{task.label} ({labels})"] if task.label else [])]),
        "metric": task.metric,
        **{f"{role} {does}": f"split {task.uses[role].split}, {task.uses[role]} rows" for role, does in ROLES.items()},
        "splits": task.remark,
        "licence": task.licence,
        "hub": "; ".join(task.address),
        "mirror": one_of(task.files),
        "source here": task.source,
        "missing": task.missing,
    }
    for fact, value in facts.items():
        if value:
            style = "yellow" if fact == "missing" else ""
            out.print(Text.assemble((f"{fact:<21}", "dim"), (value, style)), soft_wrap=True)
    look = "" if task.kind == LANGUAGE_MODEL else f" Look at its data: `fairtune data card {task.name}`."
    out.print(Text(f"\nIn a study: `task: {task.name}`.{look}"))
