"""`fairtune export`: a run's model as a folder that transformers or PEFT loads."""

from __future__ import annotations

from dataclasses import asdict
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

RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="A run folder, or study/arm/seed-n in --runs.", show_default=False)
]
NewFolder = Annotated[
    Path, typer.Argument(metavar="DIR", help="A folder that does not exist yet, or is empty.", show_default=False)
]


@report_errors
def export(run: RunName, out: NewFolder, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """Export a finished run's model for transformers; of a PEFT arm, the adapter."""
    from fairtune.export import export_model

    done = export_model(run, out, runs)
    if as_json:
        print_json(asdict(done))
        return
    what = "adapter" if done.adapter else "model"
    lines = [f"{done.run}: {what} in {done.out}, {done.model_bytes / 1e6:,.2f} MB. To load it:", "", *done.loading]
    console().print("\n".join(lines), soft_wrap=True, markup=False, highlight=False)
