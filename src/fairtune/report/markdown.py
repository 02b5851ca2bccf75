"""The report as GitHub-flavoured Markdown, for a README, an issue or a pull request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fairtune.report.content import ArmRow, Header, ReportContent, Spread, Versus
from fairtune.report.data_markdown import data_lines
from fairtune.report.markdown_text import items, one_line, plain, section, table
from fairtune.report.numbers import (
    DASH,
    between,
    confidence,
    error_size,
    gigabytes,
    megabytes,
    metric_unit,
    millions,
    p_value,
    percent,
    points,
    ratio,
    share,
    significant,
    whole,
)
from fairtune.report.starting import CardSummary
from fairtune.tasks.metrics import TITLES

TIME_HEADS = ("arm", "n", "seconds a step", "ratio to reference", "bound: lowest ratio allowed", "MFLOP a token")
SIZE_HEADS = (
    "arm", "n", "trainable", "frozen", "trainable %", "gradients and optimizer state saved (MB)", "peak memory (GB)",
)  # fmt: skip
START_HEADS = (
    "arm", "worst orthogonality error", "worst direction error", "row norm", "in the checkpoint", "cosine of row spaces",
    "spread of logits", "in the checkpoint", "frozen tensors proven unchanged",
)  # fmt: skip


class MarkdownExporter:
    """The text for places that show Markdown."""

    name, file_name = "markdown", "report.md"

    def render(self, content: ReportContent) -> str:
        return "\n".join(_lines(content)) + "\n"


def _lines(content: ReportContent) -> Iterator[str]:
    header = content.header
    yield from _opening(header)
    yield from items(f"**{plain(f.arm)}**: {plain(' '.join((f.text, *f.cautions)))}" for f in content.findings)
    yield from section("Results")
    yield from table(_result_heads(header), [_result_cells(header, row) for row in content.rows])
    yield from section("Other metrics")
    metrics = list(dict.fromkeys(name for row in content.rows for name in row.summaries))
    heads = ["arm", "n", *(f"{TITLES.get(name, name)} ({metric_unit(name)})" for name in metrics)]
    yield from table(heads, [_metric_cells(row, metrics) for row in content.rows])
    if content.like_with_like:
        yield from section("Like with like")
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
        yield from table(heads, [_versus_cells(versus) for versus in content.like_with_like])
    yield from section("Differences between arms other than methods")
    yield from items(map(plain, content.audit), "None: the arms differ in their methods only.")
    yield from section("Data")
    yield from data_lines(content.data)
    yield from section("Time and size")
    yield from table(TIME_HEADS, [_time_cells(row) for row in content.rows])
    yield ""
    yield from items(map(plain, content.timing_notes))
    yield ""
    yield from table(SIZE_HEADS, [_size_cells(row) for row in content.rows])
    yield from section("What each arm started from")
    yield from items(map(_card_line, content.cards), "No run is finished.")
    if any(card.attention for card in content.cards):
        yield ""
        yield from table(START_HEADS, [_start_cells(card) for card in content.cards])
        yield ""
        yield from items(map(plain, content.starting_notes))
    yield from section("Failures and exclusions")
    yield from items(map(plain, trouble_lines(content)), "None: every planned run finished, and none was left out.")
    yield from section("How to read this")
    yield from items(map(plain, content.notes))
    yield from section("Signatures")
    yield "```text"
    yield from (f"{run.status:<11} {one_line(run.signature)}" for run in content.runs)
    yield "```"


def _opening(header: Header) -> Iterator[str]:
    yield f"# {plain(header.study)}"
    yield ""
    runs = ", ".join(f"{count} {status}" for status, count in header.statuses.items())
    seeds = ", ".join(map(str, header.seeds))
    yield plain(
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
    start = [plain(row.arm), str(own.n), percent(own.mean), percent(own.sd), between(own.low, own.high, percent)]
    return start + (_difference_cells(row.versus) if row.versus else [DASH, DASH, DASH, "reference"])


def _difference_cells(versus: Versus) -> list[str]:
    shown = points(versus.difference) if versus.low is not None else DASH
    verdict = f"**{versus.word}**" + (f" ({plain(versus.note)})" if versus.note else "")
    if versus.confounds:
        verdict += f"; differs in {plain(', '.join(c.setting for c in versus.confounds))}"
    return [shown, between(versus.low, versus.high, points), p_value(versus.p).replace("<", "&lt;"), verdict]


def _versus_cells(versus: Versus) -> list[str]:
    return [plain(versus.arm), plain(versus.reference), str(versus.n), *_difference_cells(versus)]


def _metric_cells(row: ArmRow, metrics: Sequence[str]) -> list[str]:
    own = [row.summaries.get(name) for name in metrics]
    cells = [f"{percent(s.mean)} ({between(s.low, s.high, percent)})" if s and s.n else DASH for s in own]
    return [plain(row.arm), str(len(row.scores)), *cells]


def _time_cells(row: ArmRow) -> list[str]:
    versus = row.versus
    slowdown = _spread(versus.slowdown if versus else None, ratio)
    flag = " **beats its bound**" if versus and versus.beats_bound else ""
    cells = [slowdown + flag, ratio(versus.bound if versus else None), millions(row.flops_per_token)]
    return [plain(row.arm), str(len(row.scores)), _spread(row.step_seconds, significant), *cells]


def _size_cells(row: ArmRow) -> list[str]:
    counts = [whole(row.trainable), whole(row.frozen), share(row.trainable_share), megabytes(row.saved_bytes)]
    return [plain(row.arm), str(len(row.scores)), *counts, _spread(row.peak_memory, gigabytes)]


def _start_cells(card: CardSummary) -> list[str]:
    errors = [error_size(card.geometry.get(f"worst_{kind}_error")) for kind in ("orthogonality", "direction")]
    names = ("row_norm", "checkpoint_row_norm", "row_space_cosine", "logit_spread", "checkpoint_logit_spread")
    proof = f"{card.proof.tensors} (n = {card.proof.runs})" if card.proof else DASH if card.frozen else "none frozen"
    return [plain(card.arm), *errors, *(significant(card.geometry.get(name)) for name in names), proof]


def _spread(spread: Spread | None, show: Callable[[float | None], str]) -> str:
    if spread is None:
        return DASH
    return show(spread.median) + (f" ({show(spread.low)} to {show(spread.high)})" if spread.n > 1 else "")


def _card_line(card: CardSummary) -> str:
    return (
        f"**{plain(card.arm)}** (seed {card.seed}): {card.same} tensors equal the checkpoint's bit for bit, "
        f"{len(card.changed)} changed, {len(card.new)} new, {len(card.unverified)} not verified, "
        f"{len(card.frozen)} frozen."
    )
