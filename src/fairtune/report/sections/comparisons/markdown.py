"""Comparisons as Markdown: like with like, the ranking, and settings that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtune.core.markdown import (
    heading,
    items,
    plain,
    table,
)
from fairtune.core.numbers import DASH, confidence, low_to_high, p_value
from fairtune.report.content import Header, Versus
from fairtune.report.sections.comparisons.worth import (
    LEFT_OUT,
    TITLE,
    Worth,
    cost_text,
    gain_cells,
    gain_heading,
    left_out_text,
    settings_text,
    worth_notes,
)
from fairtune.settings.scales import Scale, relative, scale_of


def fair_lines(header: Header, compared: Sequence[Versus]) -> Iterator[str]:
    """Like with like, where there is such a comparison."""
    if compared:
        yield from heading("Like with like")
        yield "Against the arm with the very same settings in which its methods do nothing: it has none, or they only look on."
        yield ""
        heads = ["arm", "against", "n", *difference_heads(header)]
        yield from table(heads, [_versus_cells(header, versus) for versus in compared])


def _versus_cells(header: Header, versus: Versus) -> list[str]:
    return [plain(versus.arm), plain(versus.reference), str(versus.n), *difference_cells(header, versus)]


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


def worth_lines(header: Header, ranking: Sequence[Worth], left_out: Sequence[Worth]) -> Iterator[str]:
    """Both tables, where there is something to rank."""
    heads = [
        "n",
        gain_heading(header),
        f"{confidence(header.confidence)} interval",
        "time per step",
        "verdict",
        "worth it?",
    ]
    if ranking:
        yield from heading(TITLE)
        yield from table(
            ["", "arm", *heads],
            [[str(place), plain(one.versus.arm), *_worth_cells(header, one)] for place, one in enumerate(ranking, 1)],
        )
        yield ""
        yield from items(map(plain, worth_notes(header, ranking)))
    if left_out:
        yield from heading(LEFT_OUT)
        yield plain(left_out_text(header))
        yield ""
        rows = [[plain(one.versus.arm), plain(one.left_out or ""), plain(one.versus.reference)] for one in left_out]
        cells = [_worth_cells(header, one) for one in left_out]
        yield from table(["arm", "without", "is", *heads], [[*row, *own] for row, own in zip(rows, cells, strict=True)])


def _worth_cells(header: Header, one: Worth) -> list[str]:
    answer = "; ".join(filter(None, (one.answer, settings_text(one))))
    return [str(one.versus.n), *gain_cells(header, one), cost_text(one.versus), f"**{one.versus.word}**", plain(answer)]


def audit_lines(audit: Sequence[str]) -> Iterator[str]:
    yield from heading("Differences between arms other than methods")
    yield from items(map(plain, audit), "None: the arms differ in their methods only.")
