"""The verdict table for the terminal: what `fairtune` shows when a study ends."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fairtune.analysis.results import Results
from fairtune.analysis.verdicts import BETTER, INFERIOR, NOT_INFERIOR, WORSE
from fairtune.report.content import ArmRow, Header, Versus
from fairtune.report.gathering import arm_rows, like_with_like, make_header
from fairtune.report.numbers import (
    DASH,
    MINUS,
    confidence,
    half_width,
    metric_unit,
    p_value,
    percent,
    points,
    share,
    significant,
)
from fairtune.report.sentences import versus_text

STYLES = {BETTER: "green", WORSE: "red", INFERIOR: "red", NOT_INFERIOR: "blue"}


def verdict_table(results: Results) -> Group:
    """The table, then like with like, confounds, and what is missing; fits in 100 columns."""
    header, rows, fair = make_header(results), arm_rows(results), like_with_like(results)
    notes = [*_arm_notes(rows), *_fair_notes(header, fair), *_trouble(results)]
    return Group(_table(header, rows), *(_hanging(name, text) for name, text in notes))


def _table(header: Header, rows: Iterable[ArmRow]) -> Table:
    level = confidence(header.confidence)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
    table.add_column("arm", overflow="fold", min_width=8, max_width=24)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column(
        Text(f"{header.metric_title} {metric_unit(header.metric)}\n± {level}"), justify="right", no_wrap=True
    )
    table.add_column(Text(f"difference, points\n[{level} interval]"), justify="right", no_wrap=True)
    table.add_column("p\n(Holm)", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("s/step\nmedian", justify="right", no_wrap=True)
    table.add_column("train-\nable %", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(header, row))
    return table


def _cells(header: Header, row: ArmRow) -> list[Text]:
    own, versus = row.summaries[header.metric], row.versus
    word = versus.word if versus else "reference"
    verdict = f"{word} *" if versus and (versus.confounds or versus.note) else word
    seconds = row.step_seconds.median if row.step_seconds else None
    texts = [
        row.arm,
        str(own.n),
        percent(own.mean) if own.low is None else f"{percent(own.mean)} ± {half_width(own.low, own.high)}",
        _difference(versus) if versus else DASH,
        p_value(versus.p) if versus else DASH,
        verdict,
        significant(seconds),
        share(row.trainable_share),
    ]
    return [Text(shown(text), style=STYLES.get(word, "") if text is verdict else "") for text in texts]


def _difference(versus: Versus) -> str:
    if versus.low is None:
        return DASH
    return f"{points(versus.difference)} [{points(versus.low)}, {points(versus.high)}]"


def _arm_notes(rows: Iterable[ArmRow]) -> Iterable[tuple[str, str]]:
    for row in rows:
        if row.versus is None:
            continue
        confounds = [
            f"{c.setting} is {c.value}, {row.versus.reference} has {c.reference_value}" for c in row.versus.confounds
        ]
        text = "; ".join([*([row.versus.note] if row.versus.note else []), *confounds])
        if text:
            yield f"* {row.arm}", text


def _fair_notes(header: Header, fair: Iterable[Versus]) -> Iterable[tuple[str, str]]:
    return [(f"like with like: {versus.arm}", versus_text(header, versus)) for versus in fair]


def _trouble(results: Results) -> Iterable[tuple[str, str]]:
    yield from ((f"failed: {name}", reason) for name, reason in results.failures.items())
    open_runs = [run for run in results.runs if run.status not in ("finished", "failed")]
    if open_runs:
        yield "not finished", f"{len(open_runs)} of {len(results.runs)} runs"
    yield from (("left out", text) for text in results.exclusions)


def _hanging(name: str, text: str) -> Table:
    """A note whose later lines stand in a little."""
    grid = Table.grid(padding=0)
    grid.add_column(width=2)
    grid.add_column(overflow="fold")
    start, rest = ("* ", name[2:]) if name.startswith("* ") else ("  ", name)
    grid.add_row(Text(start), Text.assemble((shown(rest), "bold"), shown(f": {' '.join(text.split())}")))
    return grid


def shown(text: str) -> str:
    """Plain signs, and nothing that a terminal would obey: a failure's reason may hold anything."""
    plain = text.replace(MINUS, "-").replace(DASH, "-")
    return "".join(sign if sign.isprintable() else " " for sign in plain)
