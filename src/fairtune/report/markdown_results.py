"""Tables of figures and comparisons as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtune.core.markdown import plain, section, table
from fairtune.core.numbers import (
    DASH,
    confidence,
    low_to_high,
    p_value,
)
from fairtune.report.content import ArmRow, Header, ReportContent, Versus
from fairtune.report.scales import Scale, relative, scale_of


def result_lines(content: ReportContent) -> Iterator[str]:
    """Figures of classifiers and how they compare."""
    header = content.header
    yield from table(_result_heads(header), [_result_cells(header, row) for row in content.rows])
    yield from section("Other metrics")
    metrics = list(dict.fromkeys(name for row in content.rows for name in row.summaries))
    heads = ["arm", "n", *(plain(scale_of(name).heading) for name in metrics)]
    yield from table(
        heads, [[plain(row.arm), str(len(row.scores)), *metric_cells(row, metrics)] for row in content.rows]
    )
    yield from fair_lines(content)


def fair_lines(content: ReportContent) -> Iterator[str]:
    """Like with like, where there is such a comparison."""
    if content.like_with_like:
        header = content.header
        yield from section("Like with like")
        yield "Against the arm with the very same settings in which its methods do nothing: it has none, or they only look on."
        yield ""
        heads = ["arm", "against", "n", *difference_heads(header)]
        yield from table(heads, [_versus_cells(header, versus) for versus in content.like_with_like])


def difference_heads(header: Header) -> list[str]:
    level, scale = confidence(header.confidence), scale_of(header.metric)
    return [f"difference ({plain(scale.difference)})", f"{level} interval", "p (Holm)", "verdict"]


def difference_cells(header: Header, versus: Versus | None) -> list[str]:
    if versus is None:
        return [DASH, DASH, DASH, "reference"]
    scale = scale_of(header.metric)
    verdict = f"**{versus.word}**" + (f" ({plain(versus.note)})" if versus.note else "")
    if versus.confounds:
        verdict += f"; differs in {plain(', '.join(c.setting for c in versus.confounds))}"
    p = p_value(versus.p).replace("<", "&lt;")
    if versus.low is None:
        return [DASH, DASH, p, verdict]
    return [*_change(scale, versus), p, verdict]


def _change(scale: Scale, versus: Versus) -> tuple[str, str]:
    base = versus.base
    difference = scale.signed(versus.difference, base)
    interval = low_to_high(versus.low, versus.high, lambda end: scale.signed(end, base))
    if not scale.plain:
        return difference, interval
    ends = low_to_high(versus.low, versus.high, lambda end: relative(end, base))
    return f"{difference} ({relative(versus.difference, base)})", f"{interval} ({ends})"


def metric_cells(row: ArmRow, metrics: Sequence[str]) -> list[str]:
    """Means with their intervals."""
    cells = []
    for name in metrics:
        summary, scale = row.summaries.get(name), scale_of(name)
        known = summary is not None and summary.n
        cells.append(
            f"{scale.value(summary.mean)} ({low_to_high(summary.low, summary.high, scale.value)})"
            if known and summary
            else DASH
        )
    return cells


def _result_heads(header: Header) -> list[str]:
    level = confidence(header.confidence)
    return ["arm", "n", plain(scale_of(header.metric).heading), "sd", f"{level} interval", *difference_heads(header)]


def _result_cells(header: Header, row: ArmRow) -> list[str]:
    own, scale = row.summaries[header.metric], scale_of(header.metric)
    figures = [scale.value(own.mean), scale.value(own.sd, own.mean), low_to_high(own.low, own.high, scale.value)]
    return [plain(row.arm), str(own.n), *figures, *difference_cells(header, row.versus)]


def _versus_cells(header: Header, versus: Versus) -> list[str]:
    return [plain(versus.arm), plain(versus.reference), str(versus.n), *difference_cells(header, versus)]
