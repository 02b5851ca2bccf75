"""The verdict table for the terminal: what `fairtune` shows when a study ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fairtune.analysis.ledger_runs import steps_text
from fairtune.analysis.results import Results
from fairtune.analysis.statistics import Summary
from fairtune.analysis.verdicts import BETTER, INFERIOR, NOT_INFERIOR, WORSE
from fairtune.core.numbers import (
    DASH,
    MINUS,
    confidence,
    p_value,
    share,
    significant,
    whole,
)
from fairtune.core.printable import printable
from fairtune.report.content import ArmRow, Header, Versus, tokenizer_text
from fairtune.report.evidence import arm_rows, like_with_like, make_header
from fairtune.report.sections.comparisons.worth import cost_text, expected_text
from fairtune.report.sections.findings.sentences import versus_text
from fairtune.settings.scales import Scale, relative, scale_of

STYLES = {BETTER: "green", WORSE: "red", INFERIOR: "red", NOT_INFERIOR: "blue"}


def verdict_table(results: Results) -> Group:
    """The table, then like with like, confounds, and what is missing; fits in 100 columns."""
    header, rows, fair = make_header(results), arm_rows(results), like_with_like(results)
    notes = [
        *_text_notes(header, rows),
        *_arm_notes(rows),
        *_cost_notes(rows),
        *_fair_notes(header, fair),
        *_trouble(results),
    ]
    return Group(_table(header, rows), *(_hanging(name, text) for name, text in notes))


def _table(header: Header, rows: Iterable[ArmRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
    table.add_column("arm", overflow="fold", min_width=8, max_width=24)
    for head in _heads(header):
        table.add_column(Text(head), justify="left" if head == "verdict" else "right", no_wrap=True)
    cells = _cells if header.text is None else _text_cells
    for row in rows:
        word = row.versus.word if row.versus else "reference"
        marked = f"{word} *" if row.versus and (row.versus.confounds or row.versus.note) else word
        texts = [row.arm, *cells(header, row, marked)]
        table.add_row(*(Text(shown(text), style=STYLES.get(word, "") if text is marked else "") for text in texts))
    return table


def _heads(header: Header) -> list[str]:
    level, scale = confidence(header.confidence), scale_of(header.metric)
    if header.text is not None:
        best = [f"{header.metric_title}\nbest ± {level}", "\nfinal"]
        return ["n", *best, f"difference, %\n[{level} interval]", "p\n(Holm)", "verdict"]
    score, difference = f"{scale.title} {scale.unit}\n± {level}", f"difference, points\n[{level} interval]"
    return ["n", score, difference, "p\n(Holm)", "verdict", "s/step\nmedian", "train-\nable %"]


def _cells(header: Header, row: ArmRow, verdict: str) -> list[str]:
    own, versus, scale = row.summaries[header.metric], row.versus, scale_of(header.metric)
    return [
        str(own.n),
        _mean(scale, own),
        _difference(versus, scale.signed) if versus else DASH,
        p_value(versus.p) if versus else DASH,
        verdict,
        significant(row.step_seconds.median if row.step_seconds else None),
        share(row.trainable_share),
    ]


def _text_cells(header: Header, row: ArmRow, verdict: str) -> list[str]:
    own, versus, scale = row.summaries[header.metric], row.versus, scale_of(header.metric)
    base = versus.base if versus else None
    return [
        str(own.n),
        _mean(scale, own),
        scale.value(row.final.mean if row.final else None),
        _difference(versus, lambda end: relative(end, base).removesuffix(" %")) if versus else DASH,
        p_value(versus.p) if versus else DASH,
        verdict,
    ]


def _mean(scale: Scale, own: Summary) -> str:
    if own.low is None:
        return scale.value(own.mean)
    return f"{scale.value(own.mean)} ± {scale.half_width(own.low, own.high, own.mean)}"


def _difference(versus: Versus, show: Callable[[float | None], str]) -> str:
    if versus.low is None:
        return DASH
    return f"{show(versus.difference)} [{show(versus.low)}, {show(versus.high)}]"


def _text_notes(header: Header, rows: Sequence[ArmRow]) -> Iterable[tuple[str, str]]:
    if header.text is None:
        return
    yield (
        header.metric_title,
        f"lower is better; per token of {tokenizer_text(header.text)}. best: the weights that did best on validation; "
        "final: those of the last step; both on the test split. The difference is that of best.",
    )
    if header.text.target_loss is not None:
        steps = {row.arm: steps_text(list((row.steps_to_target or {}).values())) or DASH for row in rows}
        yield f"steps to a validation loss of {header.text.target_loss:g}", _by_arm(steps)
    yield "tokens per second, median", _by_arm({row.arm: whole(row.tokens_per_second) for row in rows})


def _by_arm(texts: dict[str, str]) -> str:
    return "; ".join(f"{arm} {text}" for arm, text in texts.items())


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


def _cost_notes(rows: Iterable[ArmRow]) -> Iterable[tuple[str, str]]:
    """Measured beside expected, of arms that make more passes than the reference."""
    costs = {row.arm: cost_text(row.versus) for row in rows if row.versus and expected_text(row.versus)}
    if costs:
        yield "time per step against the reference", _by_arm(costs)


def _fair_notes(header: Header, fair: Iterable[Versus]) -> Iterable[tuple[str, str]]:
    return [(f"like with like: {versus.arm}", versus_text(header, versus)) for versus in fair]


def _trouble(results: Results) -> Iterable[tuple[str, str]]:
    yield from ((f"failed: {name}", reason) for name, reason in results.failures.items())
    open_runs = [run for run in results.runs if run.status not in ("finished", "failed", "damaged")]
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
    return printable(text.replace(MINUS, "-").replace(DASH, "-"))
