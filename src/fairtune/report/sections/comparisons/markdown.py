"""Comparisons as Markdown: the ranking, plain differences, and settings that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtune.analysis.arm_pairs import LEARNING, METHODS
from fairtune.analysis.results import Results
from fairtune.analysis.scales import Scale, relative, scale_of
from fairtune.analysis.tuned_arms import point_text
from fairtune.core.markdown import (
    heading,
    items,
    plain,
    prose,
    table,
)
from fairtune.core.numbers import DASH, confidence, low_to_high, p_value
from fairtune.report.content import ArmRow, Header, Versus
from fairtune.report.sections.comparisons.worth import (
    LEFT_OUT,
    RAW,
    TITLE,
    Worth,
    cost_text,
    gain_cells,
    gain_heading,
    left_out_text,
    raw_note,
    settings_text,
    worth_notes,
)


def raw_lines(header: Header, found: Sequence[Versus]) -> Iterator[str]:
    """Plain differences to the reference, where an arm's primary comparison is another."""
    if found:
        yield from heading(RAW)
        yield plain(raw_note(header))
        yield ""
        heads = ["arm", "n", f"difference ({plain(scale_of(header.metric).difference)})", "differs in"]
        yield from table(heads, [_raw_cells(header, versus) for versus in found])


def _raw_cells(header: Header, versus: Versus) -> list[str]:
    settings = ", ".join(c.setting for c in versus.confounds) or "the methods of its control"
    return [plain(versus.arm), str(versus.n), _change(scale_of(header.metric), versus)[0], plain(settings)]


def difference_heads(header: Header) -> list[str]:
    level, scale = confidence(header.confidence), scale_of(header.metric)
    simple = f" (simple baselines: {header.simple_family})" if header.simple_family else ""
    family = [f"among {header.family} comparisons{simple}"] if header.family > 1 else []
    return [
        "against",
        f"difference ({plain(scale.difference)})",
        f"{level} interval, alone",
        *family,
        "p (Holm)",
        "verdict",
    ]


def difference_cells(header: Header, versus: Versus | None) -> list[str]:
    families = header.family > 1
    if versus is None:
        return [DASH, DASH, DASH, *([DASH] if families else []), DASH, "reference"]
    scale = scale_of(header.metric)
    verdict = f"**{versus.word}**" + (f" ({plain(versus.note)})" if versus.note else "")
    if versus.about != METHODS and (versus.confounds or versus.about != LEARNING):
        verdict += f"; compares {plain(versus.about)}: {plain(', '.join(c.setting for c in versus.confounds))}"
    p = p_value(versus.p).replace("<", "&lt;")
    against = (
        f"{plain(versus.reference)} ({scale.value(versus.base)})"
        if versus.base is not None
        else plain(versus.reference)
    )
    if versus.low is None:
        return [against, DASH, DASH, *([DASH] if families else []), p, verdict]
    family = [_interval(scale, versus, versus.family_low, versus.family_high)] if families else []
    return [against, *_change(scale, versus), *family, p, verdict]


def _change(scale: Scale, versus: Versus) -> tuple[str, str]:
    difference = scale.signed(versus.difference, versus.base)
    if scale.plain:
        difference = f"{difference} ({relative(versus.difference, versus.base)})"
    return difference, _interval(scale, versus, versus.low, versus.high)


def _interval(scale: Scale, versus: Versus, low: float | None, high: float | None) -> str:
    base = versus.base
    interval = low_to_high(low, high, lambda end: scale.signed(end, base))
    if not scale.plain or low is None:
        return interval
    return f"{interval} ({low_to_high(low, high, lambda end: relative(end, base))})"


def worth_lines(header: Header, ranking: Sequence[Worth], left_out: Sequence[Worth]) -> Iterator[str]:
    """Both tables, where there is something to rank."""
    heads = [
        "against",
        "n",
        gain_heading(header),
        f"{confidence(header.confidence)} interval, alone",
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
        yield from items(map(prose, worth_notes(header, ranking)))
    if left_out:
        yield from heading(LEFT_OUT)
        yield plain(left_out_text(header))
        yield ""
        rows = [[plain(one.versus.arm), plain(one.left_out or ""), *_worth_cells(header, one)] for one in left_out]
        yield from table(["arm", "without", *heads], rows)


def _worth_cells(header: Header, one: Worth) -> list[str]:
    answer = "; ".join(filter(None, (one.answer, settings_text(one))))
    return [
        plain(one.versus.reference),
        str(one.versus.n),
        *gain_cells(header, one),
        cost_text(one.versus),
        f"**{one.versus.word}**",
        prose(answer),
    ]


def choice_lines(results: Results) -> Iterator[str]:
    """Settings that arms chose by trials of their own, and the arms that were added for that."""
    if results.tuning is None:
        return
    for arm in results.tuning.arms.values():
        yield f"{arm.arm}: {point_text(arm.point)}, chosen by trials of its own"
    for name, planned in results.plan["arms"].items():
        if matches := planned.get("matches"):
            yield f"{name}: the settings that {' and '.join(matches)} chose, as a matched control"


def audit_lines(audit: Sequence[str], rows: Sequence[ArmRow]) -> Iterator[str]:
    yield from heading("Differences between arms other than methods")
    yield from items(map(plain, audit), "None: the arms differ in their methods only.")
    yield ""
    yield "The methods of each arm:"
    yield ""
    yield from items(f"**{plain(row.arm)}**: {plain(', '.join(row.methods) or 'no methods')}" for row in rows)
