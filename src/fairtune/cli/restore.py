"""`fairtune restore`: the whole model again, from a delta and its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtune.cli.answering import AsJson, answers, console, print_json
from fairtune.cli.export import Checkpoint, megabytes

DeltaFolder = Annotated[
    Path, typer.Argument(metavar="DELTA", help="A folder that `export --delta` wrote.", show_default=False)
]
NewFolder = Annotated[
    Path, typer.Option("--out", metavar="FOLDER", help="A new folder for the model.", show_default=False)
]


@answers
def restore(delta: DeltaFolder, out: NewFolder, model: Checkpoint = None, as_json: AsJson = False) -> None:
    """Rebuild the whole model of a delta, and prove that each tensor is the run's, bit for bit."""
    from fairtune.export.restoration import restore_delta

    done = restore_delta(delta, out, model)
    if as_json:
        print_json(done.as_json())
        return
    console().print(
        f"{out}: {megabytes(done.model_bytes)}, {done.tensors} tensors, each bit-equal to the run's\n  {done.signature}",
        soft_wrap=True,
    )
