"""What the evidence supports, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtune.analysis.verdicts import BETTER, INFERIOR, NONE, NOT_INFERIOR, NOT_SEPARABLE, WORSE
from fairtune.core.numbers import (
    MINUS,
    confidence,
    low_to_high,
    p_equals,
)
from fairtune.report.content import ArmRow, Header, Versus
from fairtune.settings.scales import Scale, relative, scale_of

REFERENCE = "reference"


def findings(header: Header, rows: Sequence[ArmRow], fair: Sequence[Versus]) -> tuple[Finding, ...]:
    """A finding for every arm, the reference first."""
    first = [row for row in rows if row.versus is None]
    others = [row for row in rows if row.versus is not None]
    return tuple(_finding(header, row, [v for v in fair if v.arm == row.arm]) for row in (*first, *others))


def _finding(header: Header, row: ArmRow, fair: Sequence[Versus]) -> Finding:
    cautions = []
    if row.failed:
        cautions.append(f"{row.failed} of its {row.planned} runs failed; the figures are of the others only.")
    if row.versus is None:
        return Finding(row.arm, REFERENCE, _reference_text(header, row), tuple(cautions))
    if 2 <= row.versus.n < row.planned - row.failed:
        cautions.append(f"Only {row.versus.n} of {row.planned} planned seeds are finished in both arms.")
    if row.versus.confounds:
        cautions.append(f"{_confounds_text(row, row.versus)}{_control_text(header, row, fair)}")
    elif fair:
        cautions.append(_control_text(header, row, fair).strip())
    return Finding(row.arm, row.versus.word, versus_text(header, row.versus), tuple(cautions))


def _reference_text(header: Header, row: ArmRow) -> str:
    summary, scale = row.summaries[header.metric], scale_of(header.metric)
    if summary.n == 0:
        return "the reference of all comparisons; no run of it is finished."
    text = f"the reference of all comparisons: {header.metric_title} {scale.value(summary.mean)}"
    if not scale.plain:
        text += " %" if scale.unit == "%" else f" ({scale.unit})"
    if summary.n == 1:
        return f"{text} in its one finished run; an interval takes two."
    if summary.low is None:
        return f"{text} (n = {summary.n}); there is no interval, since not every run's is a finite number."
    interval = low_to_high(summary.low, summary.high, scale.value)
    return f"{text} ({confidence(header.confidence)} interval {interval}, n = {summary.n})."


def versus_text(header: Header, versus: Versus) -> str:
    """One comparison in a sentence, without the arm's own name."""
    note, scale = versus.note, scale_of(header.metric)
    if versus.word == NONE or versus.difference is None:
        return f"no verdict against {versus.reference}: {note}."
    text = _in_its_unit(header, versus, scale) if scale.plain else _in_points(header, versus, scale)
    return f"{text} {note[0].upper()}{note[1:]}." if note else text


def _in_points(header: Header, versus: Versus, scale: Scale) -> str:
    other, difference, margin = versus.reference, scale.signed(versus.difference), scale.distance(versus.margin)
    evidence = f"({_evidence(header, versus, low_to_high(versus.low, versus.high, scale.signed))})"
    by = f"by {scale.distance(versus.difference)} points {evidence}"
    return {
        BETTER: f"better than {other} {by}.",
        WORSE: f"worse than {other} {by}.",
        INFERIOR: f"inferior to {other} {by}: a loss beyond the margin, {margin} points, is shown.",
        NOT_INFERIOR: f"not inferior to {other}: the difference is {difference} points {evidence}, "
        f"and a loss of the margin, {margin} points, is ruled out.",
        NOT_SEPARABLE: f"not separable from {other}: the difference is {difference} points {evidence}.",
    }[versus.word]


def _in_its_unit(header: Header, versus: Versus, scale: Scale) -> str:
    """Differences of a plain number, with what share of the other arm's they are."""
    other, title, base = versus.reference, header.metric_title, versus.base
    higher = (versus.difference or 0) > 0
    change, interval = (
        relative(versus.difference, base),
        low_to_high(versus.low, versus.high, lambda end: relative(end, base)),
    )
    evidence = f"{change.lstrip(f'+{MINUS}')}; {_evidence(header, versus, interval)}"
    by = f"{title} is {'higher' if higher else 'lower'} by {scale.distance(versus.difference, base)} ({evidence})"
    margin, loss = margin_text(header), "rise" if scale.lower_is_better else "fall"
    return {
        BETTER: f"better than {other}: {by}.",
        WORSE: f"worse than {other}: {by}.",
        INFERIOR: f"inferior to {other}: {by}, shown to be more than the margin of {margin}.",
        NOT_INFERIOR: f"not inferior to {other}: {by}, and a {loss} by the margin, {margin}, is ruled out.",
        NOT_SEPARABLE: f"not separable from {other}: {by}.",
    }[versus.word]


def _evidence(header: Header, versus: Versus, interval: str) -> str:
    return f"{confidence(header.confidence)} interval {interval}, n = {versus.n}, {p_equals(versus.p)}"


def margin_text(header: Header) -> str:
    """The margin of a plain metric, as the study states it."""
    stated = header.stated_margin or ""
    return f"{stated.rstrip('% ')} %" if "%" in stated else scale_of(header.metric).distance(header.margin)


def _confounds_text(row: ArmRow, versus: Versus) -> str:
    also = "also " if row.methods else ""
    differences = " and ".join(f"{c.setting} ({c.value}, not {c.reference_value})" for c in versus.confounds)
    return f"It differs from {versus.reference} {also}in {differences}."


def _control_text(header: Header, row: ArmRow, fair: Sequence[Versus]) -> str:
    if fair:
        return " " + " ".join(f"Like with like: {versus_text(header, v)}" for v in fair)
    if not row.methods:
        return " It has no methods: the difference is that of the settings."
    return " No arm without methods has its settings, so method and settings cannot be told apart."


@dataclass(frozen=True)
class Finding:
    """What the evidence supports about an arm, in sentences; the first of the page.

    Args:
        word: the verdict, or `reference`.
        cautions: what to mind, each a sentence.
    """

    arm: str
    word: str
    text: str
    cautions: tuple[str, ...]
