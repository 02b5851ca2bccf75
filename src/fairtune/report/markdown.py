"""The report as GitHub-flavoured Markdown, for a README, an issue or a pull request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from fairtune.report.content import ArmRow, CardSummary, Header, ReportContent, Spread, Versus
from fairtune.report.numbers import (
    DASH,
    between,
    confidence,
    gigabytes,
    metric_unit,
    p_value,
    percent,
    points,
    share,
    significant,
    whole,
)
from fairtune.tasks.metrics import TITLES


class MarkdownExporter:
    """The text for places that show Markdown."""

    name, file_name = "markdown", "report.md"

    def render(self, content: ReportContent) -> str:
        return "\n".join(_lines(content)) + "\n"


def _lines(content: ReportContent) -> Iterator[str]:
    header = content.header
    yield from _opening(header)
    yield from _items(f"**{_plain(f.arm)}**: {_plain(' '.join((f.text, *f.cautions)))}" for f in content.findings)
    yield from _section("Results")
    yield from _table(_result_heads(header), [_result_cells(header, row) for row in content.rows])
    yield from _section("Other metrics")
    metrics = list(dict.fromkeys(name for row in content.rows for name in row.summaries))
    heads = ["arm", "n", *(f"{TITLES.get(name, name)} ({metric_unit(name)})" for name in metrics)]
    yield from _table(heads, [_metric_cells(row, metrics) for row in content.rows])
    if content.like_with_like:
        yield from _section("Like with like")
        yield "Against the arm without methods that has the very same settings."
        yield ""
        heads = [
            "arm",
            "against",
            "n",
            "difference (points)",
            f"{confidence(header.confidence)} interval",
            "p (Holm)",
            "verdict",
        ]
        yield from _table(heads, [_versus_cells(versus) for versus in content.like_with_like])
    yield from _section("Differences between arms other than methods")
    yield from _items(map(_plain, content.audit), "None: the arms differ in their methods only.")
    yield from _section("Time and size")
    heads = ["arm", "n", "seconds a step", "ratio to reference", "trainable %", "parameters", "peak memory (GB)"]
    yield from _table(heads, [_cost_cells(row) for row in content.rows])
    yield ""
    yield from _items(map(_plain, content.timing_notes))
    yield from _section("What each arm started from")
    yield from _items(map(_card_line, content.cards), "No run is finished.")
    yield from _section("Failures and exclusions")
    yield from _items(map(_plain, trouble_lines(content)), "None: every planned run finished, and none was left out.")
    yield from _section("How to read this")
    yield from _items(map(_plain, content.notes))
    yield from _section("Signatures")
    yield "```text"
    yield from (f"{run.status:<11} {_one_line(run.signature)}" for run in content.runs)
    yield "```"


def _opening(header: Header) -> Iterator[str]:
    yield f"# {_plain(header.study)}"
    yield ""
    runs = ", ".join(f"{count} {status}" for status, count in header.statuses.items())
    seeds = ", ".join(map(str, header.seeds))
    yield _plain(
        f"{header.task} · {header.model} · {header.metric_title} · seeds {seeds} · runs: {runs} · plan {header.plan} · "
        f"fairtune {header.fairtune}"
    )
    yield ""


def trouble_lines(content: ReportContent) -> list[str]:
    """Everything that went wrong or was left out, a line each."""
    return [
        *(f"failed: {name}: {reason}" for name, reason in content.failures.items()),
        *(f"not finished: {name}: {status}" for name, status in content.unfinished.items()),
        *(f"failed before, then finished: {text}" for text in content.retried),
        *(f"left out: {text}" for text in content.exclusions),
        *(f"warning: {text}" for text in content.warnings),
    ]


def _result_heads(header: Header) -> list[str]:
    level = confidence(header.confidence)
    title = f"{header.metric_title} ({metric_unit(header.metric)})"
    return [
        "arm",
        "n",
        title,
        "sd",
        f"{level} interval",
        "difference (points)",
        f"{level} interval",
        "p (Holm)",
        "verdict",
    ]


def _result_cells(header: Header, row: ArmRow) -> list[str]:
    own = row.summaries[header.metric]
    start = [_plain(row.arm), str(own.n), percent(own.mean), percent(own.sd), between(own.low, own.high, percent)]
    return start + (_difference_cells(row.versus) if row.versus else [DASH, DASH, DASH, "reference"])


def _difference_cells(versus: Versus) -> list[str]:
    shown = points(versus.difference) if versus.low is not None else DASH
    verdict = f"**{versus.word}**" + (f" ({_plain(versus.note)})" if versus.note else "")
    if versus.confounds:
        verdict += f"; differs in {_plain(', '.join(c.setting for c in versus.confounds))}"
    return [shown, between(versus.low, versus.high, points), p_value(versus.p).replace("<", "&lt;"), verdict]


def _versus_cells(versus: Versus) -> list[str]:
    return [_plain(versus.arm), _plain(versus.reference), str(versus.n), *_difference_cells(versus)]


def _metric_cells(row: ArmRow, metrics: Sequence[str]) -> list[str]:
    own = [row.summaries.get(name) for name in metrics]
    cells = [f"{percent(s.mean)} ({between(s.low, s.high, percent)})" if s and s.n else DASH for s in own]
    return [_plain(row.arm), str(len(row.scores)), *cells]


def _cost_cells(row: ArmRow) -> list[str]:
    ratio = row.versus.slowdown if row.versus else None
    times = [_spread(row.step_seconds, significant), _spread(ratio, significant)]
    cells = [*times, share(row.trainable_share), whole(row.parameters), _spread(row.peak_memory, gigabytes)]
    return [_plain(row.arm), str(len(row.scores)), *cells]


def _spread(spread: Spread | None, show: Callable[[float | None], str]) -> str:
    if spread is None:
        return DASH
    return show(spread.median) + (f" ({show(spread.low)} to {show(spread.high)})" if spread.n > 1 else "")


def _card_line(card: CardSummary) -> str:
    return (
        f"**{_plain(card.arm)}** (seed {card.seed}): {card.same} tensors equal the checkpoint's bit for bit, "
        f"{len(card.changed)} changed, {len(card.new)} new, {len(card.unverified)} not verified, "
        f"{len(card.frozen)} frozen."
    )


def _section(title: str) -> tuple[str, ...]:
    return ("", f"## {title}", "")


def _items(lines: Iterable[str], otherwise: str = "") -> list[str]:
    found = [f"- {line}" for line in lines]
    return found or [otherwise]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' for _ in heads)}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())
