"""`fairtune check`: a reviewer's calculator for printed figures."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from fairtune.cli.command import AsJson, console, print_json, report_errors
from fairtune.core.errors import FairtuneError, shown

Figures = Annotated[
    list[str],
    typer.Argument(
        metavar="FIGURES",
        help="One or two as printed: '93.12 vs 91.28', '93.12±0.3 vs 91.28±0.5', '.9312'.",
        show_default=False,
    ),
]
Examples = Annotated[int | None, typer.Option("--n", metavar="N", help="Test examples; known of a --task.")]
Task = Annotated[
    str | None,
    typer.Option("--task", metavar="NAME", help="A task whose test set and luck of seeds are known, such as sst2."),
]
SeedCount = Annotated[
    str, typer.Option("--seeds", metavar="K[,K]", help="Seeds that the figures are means over, of both or of each.")
]
Deviation = Annotated[
    float | None, typer.Option("--sd", metavar="POINTS", help="Standard deviation over seeds, where the paper has one.")
]
BestOf = Annotated[
    str,
    typer.Option(
        "--best-of", metavar="K[,K]", help="The figures are the best of K seeds or evaluations, both or each."
    ),
]
MetricName = Annotated[
    str | None, typer.Option("--metric", metavar="NAME", help="Accuracy, if not said; others are no multiple of 1/n.")
]


@report_errors
def check(
    figures: Figures,
    n: Examples = None,
    seeds: SeedCount = "1",
    task: Task = None,
    sd: Deviation = None,
    best_of: BestOf = "1",
    metric: MetricName = None,
    as_json: AsJson = False,
) -> None:
    """Say what test set and seeds alone allow to say about two printed figures, and which of them cannot be."""
    from fairtune.analysis.figure_check import check_figures  # scipy: a second that `--help` need not wait for
    from fairtune.analysis.figure_sentences import check_record, sections, title_sentence, verdict_sentence

    found = check_figures(
        " ".join(figures),
        n,
        seeds=_counts("--seeds", seeds),
        best_of=_counts("--best-of", best_of),
        sd=sd,
        task=task,
        metric=metric,
    )
    if as_json:
        print_json(check_record(found))
        return
    out = console()
    out.print(Text(title_sentence(found), style="bold"))
    out.print()
    out.print(Text(verdict_sentence(found)))
    for heading, lines in sections(found).items():
        out.print()
        out.print(Text(heading, style="bold"))
        for line in lines:
            out.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def _counts(option: str, value: str) -> tuple[int, int]:
    """One number for both figures, or one of each."""
    if not re.fullmatch(r"[0-9]{1,9}(\s*,\s*[0-9]{1,9})?", value.strip()):
        raise FairtuneError(
            f"{option}: found {shown(value)}; give a whole number, or two such as 5,1 for the two figures."
        )
    first, *others = (int(part) for part in value.split(","))
    return first, others[0] if others else first
