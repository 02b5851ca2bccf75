"""`fairtune data make-titles`: a balanced training set for the title task, made of correct titles."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from fairtune.cli.command import AsJson, console, print_json, report_errors
from fairtune.core.errors import DataError
from fairtune.core.printable import clip, printable
from fairtune.tasks.titles import KINDS, make_titles, read_titles
from fairtune.tasks.titles.files import check_target, write_made
from fairtune.tasks.titles.made_titles import CORRECT, ROWS

Out = Annotated[
    Path,
    typer.Argument(metavar="OUT", help="The file to write: .csv, .jsonl or .jsonl.gz.", show_default=False),
]
From = Annotated[
    list[Path],
    typer.Option(
        "--from",
        metavar="FILE",
        help="Correct titles: .bib, .csv, .tsv, .jsonl, .parquet, or .txt with one per line, each also .gz; may be repeated.",
        show_default=False,
    ),
]
Count = Annotated[
    int | None,
    typer.Option(
        "--rows", metavar="N", help=f"How many, half of them correct; {ROWS:,} or what the titles allow if absent."
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The same seed and titles give the same file.")]
ColumnName = Annotated[
    str, typer.Option("--column", metavar="NAME", help="The column, or BibTeX field, with the titles.")
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="How the files with titles are encoded, if not in UTF-8.", show_default=False
    ),
]
Weights = Annotated[
    list[str] | None,
    typer.Option(
        "--weight", metavar="KIND=NUMBER", help="Make a kind more or less frequent; 0 is never; may be repeated."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")]
SHOWN = 60
"""Characters of an example."""


@report_errors
def make(
    out: Out,
    files: From,
    rows: Count = None,
    seed: Seed = 0,
    column: ColumnName = "title",
    encoding: Encoding = None,
    weight: Weights = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Make a balanced set of correct and wrong titles by corrupting correct ones the way extraction fails.

    OUT gets the columns title, label (1 correct, 0 wrong), kind, and original. Each title given is used once: as a correct
    one, or in one corruption.
    """
    check_target(out, force)
    if any(out.resolve() == file.resolve() for file in files):
        raise DataError(f"{out}: the titles come from this file; choose another name for OUT.")
    weights = _weights(weight or [])
    titles = read_titles(files, column, encoding)
    made = make_titles(titles, rows, seed, weights)
    write_made(out, made)
    found = Counter(row.kind for row in made)
    counts = {kind: found[kind] for kind in (CORRECT, *KINDS)}
    if as_json:
        print_json({"file": str(out), "titles": len(titles), "rows": len(made), "seed": seed, "kinds": counts})
        return
    examples = {row.kind: clip(printable(row.title), SHOWN) for row in reversed(made)}
    for kind, count in counts.items():
        console().print(Text(f"{kind:<19}{count:>7,}  {examples.get(kind, '')}"), soft_wrap=True)
    console().print(Text(f"{out}: {len(made):,} rows, from {len(titles):,} titles, seed {seed}"), soft_wrap=True)


def _weights(given: list[str]) -> dict[str, float]:
    weights = {}
    for item in given:
        name, _, number = item.partition("=")
        try:
            weights[name.strip()] = float(number)
        except ValueError:
            raise DataError(f"--weight {item}: write KIND=NUMBER, such as --weight truncated_end=20.") from None
    return weights
