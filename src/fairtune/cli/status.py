"""`fairtune status`: how far studies are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fairtune.cli.answering import AsJson, Runs, answers, console, print_json
from fairtune.core.errors import LedgerError
from fairtune.ledger.seals import run_facts
from fairtune.ledger.studies import study_names

if TYPE_CHECKING:
    from fairtune.analysis.results import RunRecord

STATES = ("finished", "running", "interrupted", "failed", "damaged", "waiting")
StudyName = Annotated[
    str | None, typer.Argument(metavar="[STUDY]", help="Name of a study; all if absent.", show_default=False)
]


@answers
def status(study: StudyName = None, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """Show how far a study is, or all of them."""
    from fairtune.analysis.results import load_results

    if study is not None:
        _one(study, runs, as_json)
        return
    counts: dict[str, Counter[str]] = {}
    problems: dict[str, str] = {}
    for name in study_names(runs):
        try:
            counts[name] = Counter(run.status for run in load_results(runs, name).runs)
        except LedgerError as error:  # one study that cannot be read must not hide the others
            problems[name] = str(error)
    if as_json:
        studies = {name: {state: found[state] for state in STATES} for name, found in counts.items()}
        print_json({"studies": studies, "problems": problems})
        return
    if not counts and not problems:
        console().print(f"No study in {runs} yet. Start one with `fairtune run FILE`.")
        return
    table = Table("study", *STATES, box=None, padding=(0, 2, 0, 0))
    for name, found in counts.items():
        table.add_row(name, *(str(found[state] or "-") for state in STATES))
    console().print(table)
    for name, problem in problems.items():
        console().print(f"{name}: cannot be read: {problem}", soft_wrap=True)


def _one(study: str, runs: Path, as_json: bool) -> None:
    from fairtune.analysis.results import load_results

    records = load_results(runs, study).runs
    if as_json:
        print_json({"study": study, "runs": [_facts(record) for record in records]})
        return
    table = Table("run", "arm", "seed", "state", "score", "seconds", "reason", box=None, padding=(0, 2, 0, 0))
    for record in records:
        facts = _facts(record)
        score = f"{100 * facts['score']:.2f}" if facts["score"] is not None else "-"  # type: ignore[operator]
        seconds = f"{facts['seconds']:.0f}" if facts["seconds"] is not None else "-"
        table.add_row(
            str(record.position + 1),
            record.arm,
            str(record.seed),
            record.status,
            score,
            seconds,
            str(facts["reason"] or ""),
        )
    console().print(table)


def _facts(record: RunRecord) -> dict[str, object]:
    facts = run_facts(record.state)
    return {
        "position": record.position,
        "arm": record.arm,
        "seed": record.seed,
        "status": record.status,
        "score": facts.score,
        "seconds": facts.seconds,
        "reason": facts.reason,
        "signature": facts.signature,
    }
