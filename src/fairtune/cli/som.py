"""`fairtune som`: the self-organising maps of a run, as pictures and figures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairtune.cli.command import (
    AsJson,
    Runs,
    console,
    print_json,
    report_errors,
)

if TYPE_CHECKING:
    from fairtune.report.sections.maps.run_page import RunPage

RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="A run folder, or study/arm/seed-n in --runs.", show_default=False)
]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o", "--out", metavar="FOLDER", help="Where the pictures go; `maps` in the run's folder if absent.",
        show_default=False,
    ),
]  # fmt: skip


@report_errors
def som(run: RunName, out: Out = None, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """Draw the maps that a run with bpsom recorded (PNG, GIF and one page) and show their figures."""
    from fairtune.report.sections.maps.run_page import open_run

    folder, page = open_run(run, runs)
    written = page.write(out or folder.path / "maps")
    if as_json:
        answer = {
            "run": page.name, "status": page.run.status, "metric": page.metric, "best_step": page.best_step,
            "passes": [asdict(one) for one in page.run.passes], "scores": [asdict(one) for one in page.run.scores],
            "files": {name: str(path) for name, path in written.items()},
        }  # fmt: skip
        print_json(answer)
        return
    _show(page, written)


def _show(page: RunPage, written: dict[str, Path]) -> None:
    from rich.table import Table

    from fairtune.report.sections.maps.content import COLUMNS

    out = console()
    out.print(page.name, style="bold")
    for note in page.notes():
        out.print(note)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("pass", no_wrap=True, vertical="bottom")
    for column in COLUMNS:
        table.add_column(column.narrow, justify="right", no_wrap=True)
    for row in page.rows():
        table.add_row(*row)
    out.print()
    out.print(table)
    index = written["index.html"]
    out.print(f"\nMaps: {index} ({len(written) - 1} pictures beside it)", soft_wrap=True)
