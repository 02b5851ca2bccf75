"""The report as GitHub-flavoured Markdown, for a README, an issue or a pull request."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairtune.core.markdown import (
    fenced,
    items,
    one_line,
    plain,
    section,
    table,
)
from fairtune.core.numbers import (
    DASH,
    error_size,
    gigabytes,
    megabytes,
    millions,
    ratio,
    share,
    significant,
    whole,
)
from fairtune.core.printable import printable
from fairtune.report.content import ArmRow, Header, ReportContent
from fairtune.report.costs import expected_text
from fairtune.report.data_markdown import data_lines, text_lines
from fairtune.report.maps.markdown import map_lines
from fairtune.report.markdown_results import result_lines
from fairtune.report.mistakes.markdown import mistake_lines
from fairtune.report.origin import Origin, origin_of
from fairtune.report.representation.words import representation_caption, representation_remarks
from fairtune.report.spread import Spread
from fairtune.report.starting import CardSummary
from fairtune.report.text_data import tokenizer_text
from fairtune.report.text_markdown import sample_lines, text_result_lines
from fairtune.report.worth_markdown import worth_lines

TIME_HEADS = ("arm", "n", "seconds a step", "ratio to reference", "bound: lowest ratio allowed", "MFLOP a token")
SIZE_HEADS = (
    "arm", "n", "trainable", "frozen", "trainable %", "gradients and optimizer state saved (MB)", "peak memory (GB)",
)  # fmt: skip
START_HEADS = (
    "arm", "worst orthogonality error", "worst direction error", "row norm", "in ORIGIN", "cosine of row spaces",
    "spread of logits", "in ORIGIN", "frozen tensors proven unchanged",
)  # fmt: skip


class MarkdownExporter:
    """The text for places that show Markdown."""

    name, file_name = "markdown", "report.md"

    def render(self, content: ReportContent) -> str:
        return printable("\n".join(_lines(content)), keep="\n") + "\n"


def _lines(content: ReportContent) -> Iterator[str]:
    header = content.header
    yield from _opening(header)
    yield from items(f"**{plain(f.arm)}**: {plain(' '.join((f.text, *f.cautions)))}" for f in content.findings)
    yield from section("Results")
    yield from (result_lines(content) if header.text is None else text_result_lines(content))
    yield from worth_lines(content)
    yield from section("Differences between arms other than methods")
    yield from items(map(plain, content.audit), "None: the arms differ in their methods only.")
    yield from section("Data")
    yield from (data_lines(content.data) if header.text is None else text_lines(header, content.data))
    if content.mistakes is not None:
        yield from section("Mistakes")
        yield from mistake_lines(content.mistakes, header.confidence)
    if content.representation is not None:
        yield from section("Representation")
        told = map(representation_caption, content.representation.arms)
        yield from items(map(plain, (*told, *representation_remarks(content.representation))))
        yield ""
        yield "The pictures (t-SNE) are in the HTML page."
    if content.maps is not None:
        yield from section("Maps")
        yield from map_lines(content.maps, header.study)
    if content.samples is not None:
        yield from section("Samples")
        yield from sample_lines(content.samples)
    yield from section("Time and size")
    yield from table(TIME_HEADS, [_time_cells(row) for row in content.rows])
    yield ""
    yield from items(map(plain, content.timing_notes))
    yield ""
    yield from table(SIZE_HEADS, [_size_cells(row) for row in content.rows])
    yield from section("What each arm started from")
    origin = origin_of(header.from_scratch)
    if header.from_scratch:
        yield f"{origin.compared}, at step 0, in the first finished run of each arm."
        yield ""
    yield from items((_card_line(card, origin) for card in content.cards), "No run is finished.")
    if any(card.attention for card in content.cards):
        yield ""
        heads = [head.replace("ORIGIN", origin.named) for head in START_HEADS]
        yield from table(heads, [_start_cells(card) for card in content.cards])
        yield ""
        yield from items(map(plain, content.starting_notes))
    yield from section("Failures and exclusions")
    yield from items(map(plain, trouble_lines(content)), "None: every planned run finished, and none was left out.")
    yield from section("How to read this")
    yield from items(map(plain, content.notes))
    yield from section("Signatures")
    yield from fenced((f"{run.status:<11} {one_line(run.signature)}" for run in content.runs), "text")


def _opening(header: Header) -> Iterator[str]:
    yield f"# {plain(header.study)}"
    yield ""
    runs = ", ".join(f"{count} {status}" for status, count in header.statuses.items())
    seeds = ", ".join(map(str, header.seeds))
    scratch = ", trained from scratch" if header.from_scratch else ""
    tokenizer = f" · tokenizer {tokenizer_text(header.text)}" if header.text is not None else ""
    yield plain(
        f"{header.task} · {header.model}{scratch}{tokenizer} · {header.metric_title} · "
        f"seeds {seeds} · runs: {runs} · plan {header.plan} · "
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


def _time_cells(row: ArmRow) -> list[str]:
    versus = row.versus
    slowdown = ", ".join(filter(None, (_spread(versus.slowdown if versus else None, ratio), expected_text(versus))))
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


def _card_line(card: CardSummary, origin: Origin) -> str:
    return (
        f"**{plain(card.arm)}** (seed {card.seed}): {card.same} tensors equal {origin.whose} bit for bit, "
        f"{len(card.changed)} changed, {len(card.new)} new, {len(card.unverified)} not verified, "
        f"{len(card.frozen)} frozen."
    )
