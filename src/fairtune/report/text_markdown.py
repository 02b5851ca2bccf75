"""Results and samples of language models as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.analysis.progress import steps_text
from fairtune.analysis.statistics import Summary
from fairtune.core.markdown import (
    items,
    plain,
    section,
    table,
)
from fairtune.core.numbers import DASH, low_to_high, whole
from fairtune.report.content import ArmRow, Header, ReportContent
from fairtune.report.markdown_results import difference_cells, difference_heads, fair_lines, metric_cells
from fairtune.report.samples import Samples, samples_text
from fairtune.report.scales import OF_TOKENS, Scale, scale_of


def text_result_lines(content: ReportContent) -> Iterator[str]:
    """Best and final, how they compare, and the other figures."""
    header, rows = content.header, content.rows
    heads = ["arm", "n", f"{_head(header, header.metric)}, best", "final", *difference_heads(header)]
    yield from table(heads, [_result_cells(header, row) for row in rows])
    yield ""
    yield "Brackets hold intervals of the mean over seeds. Lower is better. The difference is that of best."
    yield from section("Other metrics")
    others = list(dict.fromkeys(name for row in rows for name in row.summaries if name != header.metric))
    target = header.text.target_loss if header.text is not None else None
    stated = [] if target is None else [f"steps to a validation loss of {target:g}"]
    heads = ["arm", "n", *(_head(header, name) for name in others), *stated, "tokens a second"]
    yield from table(heads, [_other_cells(row, others) for row in rows])
    yield from fair_lines(content)


def _head(header: Header, metric: str) -> str:
    """A metric with what it counts: perplexity (a token, bpe-2000)."""
    scale = scale_of(metric)
    named = [header.text.tokenizer] if header.text is not None and metric in OF_TOKENS else []
    told = ", ".join(([scale.unit] if scale.unit else []) + named)
    return plain(f"{scale.title} ({told})" if told else scale.title)


def _result_cells(header: Header, row: ArmRow) -> list[str]:
    scale, best = scale_of(header.metric), row.summaries[header.metric]
    figures = [summary_text(scale, best), summary_text(scale, row.final)]
    return [plain(row.arm), str(best.n), *figures, *difference_cells(header, row.versus)]


def summary_text(scale: Scale, summary: Summary | None) -> str:
    """A mean with its interval, where there is one."""
    if summary is None or not summary.n:
        return DASH
    interval = "" if summary.low is None else f" ({low_to_high(summary.low, summary.high, scale.value)})"
    return scale.value(summary.mean) + interval


def _other_cells(row: ArmRow, metrics: list[str]) -> list[str]:
    steps = [] if row.steps_to_target is None else [steps_text(list(row.steps_to_target.values())) or DASH]
    return [
        plain(row.arm), str(len(row.scores)), *metric_cells(row, metrics), *steps, whole(row.tokens_per_second)
    ]  # fmt: skip


def sample_lines(samples: Samples) -> Iterator[str]:
    """A table a prompt, a row an arm."""
    if samples.prompts:
        yield samples_text(samples)
        for continued in samples.prompts:
            yield ""
            yield from table(
                ["arm", "text"],
                [
                    [plain(arm), f"**{plain(continued.prompt)}** {plain(text)}"]
                    for arm, text in continued.by_arm.items()
                ],
            )
    if samples.remarks:
        yield ""
        yield from items(f"Left out: {plain(remark)}." for remark in samples.remarks)
