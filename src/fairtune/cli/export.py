"""`fairtune export` and `fairtune restore`: a run's model, whole or as a delta, and the way back."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from fairtune.cli.command import (
    AsJson,
    Runs,
    console,
    print_json,
    report_errors,
)
from fairtune.core.errors import FairtuneError

RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="A run folder, or study/arm/seed-n in --runs.", show_default=False)
]
Delta = Annotated[
    bool, typer.Option("--delta", help="Write only what training changed, and a recipe that rebuilds the rest.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FOLDER", help="A new folder; STUDY-ARM-SEED-delta or -model if absent.", show_default=False
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option("--model", metavar="FOLDER", help="Where the checkpoint is, if not where it was.", show_default=False),
]
DeltaFolder = Annotated[
    Path, typer.Argument(metavar="DELTA", help="A folder that `export --delta` wrote.", show_default=False)
]
NewFolder = Annotated[
    Path, typer.Option("--out", metavar="FOLDER", help="A new folder for the model.", show_default=False)
]


Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE",
        help="A Python file that the run's methods come from, if it is not installed; it is run.",
        show_default=False,
    ),
]


@report_errors
def export(
    run: RunName,
    delta: Delta = False,
    out: Out = None,
    model: Checkpoint = None,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Export a finished run's model: a copy of it, or with --delta only what training changed."""
    from fairtune.export.delta import export_delta, export_model, find_run

    if model is not None and not delta:
        raise FairtuneError("--model says where the checkpoint of a delta is; a whole model needs none. Add --delta.")
    name = find_run(run, runs).name
    place = out or Path(f"{name.replace('/', '-')}-{'delta' if delta else 'model'}")
    if not delta:
        size = export_model(run, place, runs)
        if as_json:
            print_json({"run": name, "out": str(place), "model_bytes": size})
        else:
            console().print(f"{name}: {megabytes(size)} in {place}", soft_wrap=True)
        return
    done = export_delta(run, place, runs, model)
    if as_json:
        print_json(done.as_json())
        return
    lines = [
        f"{name}: delta in {place}",
        f"  whole model  {megabytes(done.model_bytes)}, {done.tensors} tensors",
        f"  delta        {megabytes(done.delta_bytes)} ({100 * done.share:.1f} %), {done.stored} tensors and the recipe",
    ]
    if done.rebuilt_otherwise:
        lines.append(
            f"  {len(done.rebuilt_otherwise)} frozen tensors are among them ({done.rebuilt_otherwise[0]} ...): this machine "
            "rebuilds them with other bits than the run had; export where it ran, and the delta is smaller."
        )
    given = "".join(f" --plugin {shlex.quote(file)}" for file in done.plugins)
    command = f"fairtune restore {shlex.quote(str(place))} --out FOLDER{given}"
    lines.append(f"Tried: it restores every tensor bit for bit. The way back: {command}")
    console().print("\n".join(lines), soft_wrap=True)


@report_errors
def restore(
    delta: DeltaFolder, out: NewFolder, model: Checkpoint = None, plugins: Plugins = None, as_json: AsJson = False
) -> None:
    """Rebuild the whole model of a delta, and prove that each tensor is the run's, bit for bit."""
    from fairtune.export.restoration import restore_delta

    done = restore_delta(delta, out, model, plugins or ())
    if as_json:
        print_json(done.as_json())
        return
    console().print(
        f"{out}: {megabytes(done.model_bytes)}, {done.tensors} tensors, each bit-equal to the run's\n  {done.signature}",
        soft_wrap=True,
    )


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.2f} MB"
