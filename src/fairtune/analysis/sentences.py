"""What the evidence supports, in plain sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairtune.analysis.arm_pairs import COPY, SETTINGS, SIMPLE, Comparison
from fairtune.analysis.scales import Scale, relative, scale_of
from fairtune.analysis.statistics import Summary
from fairtune.analysis.verdicts import BETTER, EQUIVALENT, INFERIOR, NONE, NOT_INFERIOR, NOT_SEPARABLE, NOT_SHOWN, WORSE
from fairtune.core.numbers import MINUS, confidence, low_to_high, p_equals, plural
from fairtune.core.printable import capital


@dataclass(frozen=True)
class Frame:
    """What all sentences about a study share.

    Args:
        family: comparisons that are corrected together.
        simple: comparisons with simple baselines, which are corrected among themselves.
        stated_margin: the margin as the study file has it.
    """

    metric: str
    confidence: float
    family: int
    stated_margin: str | None
    margin: float | None
    simple: int = 0

    def size(self, found: Comparison) -> int:
        """Comparisons that are corrected together with this one."""
        return self.simple if found.role == SIMPLE else self.family

    @property
    def scale(self) -> Scale:
        return scale_of(self.metric)


def reference_text(frame: Frame, summary: Summary) -> str:
    """The arm that no comparison is about."""
    scale = frame.scale
    if summary.n == 0:
        return "the reference of all comparisons; no run of it is finished."
    text = f"the reference of all comparisons: {scale.title} {scale.value(summary.mean)}"
    if not scale.plain:
        text += " %" if scale.unit == "%" else f" ({scale.unit})"
    if summary.n == 1:
        return f"{text} in its one finished run; an interval takes two."
    if summary.low is None:
        return f"{text} (n = {summary.n}); there is no interval, since not every run's is a finite number."
    interval = low_to_high(summary.low, summary.high, scale.value)
    return f"{text} ({confidence(frame.confidence)} interval {interval}, n = {summary.n})."


def comparison_text(frame: Frame, found: Comparison) -> str:
    """One comparison in a sentence or two, without the arm's own name."""
    note = found.verdict.note
    if found.difference is None or found.found.p is None:
        return f"{found.verdict.word} against {found.reference}: {note or 'too few runs are finished'}."
    text = _lead(frame, found)
    return f"{text} {capital(note)}." if note else text


def _lead(frame: Frame, found: Comparison) -> str:
    other, scale, word = found.reference, frame.scale, found.verdict.word
    evidence = f"({evidence_text(frame, found)})"
    margin = margin_text(frame, found)
    if scale.plain:
        higher = (found.difference or 0) > 0
        change = relative(found.difference, found.means[1]).lstrip(f"+{MINUS}")
        size = f"{scale.distance(found.difference, found.means[1])}, which is {change}"
        by = f": {scale.title} is {'higher' if higher else 'lower'} by {size} {evidence}"
        plainly = by
    else:
        by = f" by {scale.distance(found.difference)} points {evidence}"
        plainly = f": the difference is {scale.signed(found.difference)} points {evidence}"
    return {
        BETTER: f"better than {other}{by}.",
        WORSE: f"worse than {other}{by}.",
        INFERIOR: f"inferior to {other}{by}; a loss beyond the margin, {margin}, is shown.",
        NOT_INFERIOR: f"not inferior to {other}{plainly}, and a loss of the margin, {margin}, is ruled out.",
        EQUIVALENT: f"equivalent to {other}{plainly}, and a loss or gain of the margin, {margin}, is ruled out.",
        NOT_SEPARABLE: f"not separable from {other}{plainly}.",
        NOT_SHOWN: f"not shown against {other}{plainly}.",
        NONE: f"no verdict against {other}{plainly}.",
    }.get(word, f"against {other}{plainly}, for description only.")


def evidence_text(frame: Frame, found: Comparison) -> str:
    """n, the interval and p alone, then those of the family where it has more than one comparison, or looks were counted."""
    alone = f"{interval_text(frame, found, found.alone)}, {p_equals(found.found.p)}"
    if found.verdict.p is None or found.verdict.family[0] is None:
        return f"n = {found.found.n}; {confidence(frame.confidence)} interval {alone}"
    if found.verdict.family == (found.found.low, found.found.high):
        return f"n = {found.found.n}; {confidence(frame.confidence)} interval {alone}"
    look = "counting every look" if found.looks else "as an early look"
    size, what = frame.size(found), "simple baselines" if found.role == SIMPLE else "comparisons"
    among = f"among {size} {what}" if size > 1 else look
    family = interval_text(frame, found, found.family)
    corrected = "Holm " if size > 1 else "corrected "
    return f"n = {found.found.n}; alone {alone}; {among} {family}, {corrected}{p_equals(found.verdict.p)}"


def interval_text(frame: Frame, found: Comparison, ends: tuple[float | None, float | None]) -> str:
    """An interval of a difference; of a plain number, as a share of the other arm's."""
    scale, base = frame.scale, found.means[1]
    return low_to_high(*ends, (lambda end: relative(end, base)) if scale.plain else scale.signed)


def margin_text(frame: Frame, found: Comparison | None = None) -> str:
    """The margin: of a plain metric as the study states it, else in points."""
    stated, scale = frame.stated_margin or "", frame.scale
    if scale.plain and "%" in stated:
        return f"{stated.rstrip('% ')} %"
    margin = found.margin if found is not None else frame.margin
    return scale.distance(margin) + ("" if scale.plain else " points")


def raw_text(frame: Frame, found: Comparison) -> str:
    """The plain difference to the reference of an arm that is compared with another, small beside it."""
    if found.difference is None:
        return ""
    names = " and ".join(found.confounds)
    settings = f", which has another {names}" if names else ""
    return f"Not a verdict: against {found.reference}{settings}, the plain difference is {_size(frame, found, found.difference)}."


def matched_text(frame: Frame, found: Comparison) -> str:
    """An arm beside its partner with the same settings, where both chose others; empty where they did not."""
    if found.matched is None:
        return ""
    other, shown = found.matched, found.matched.difference
    if shown is None or other.found.p is None:
        return f"It chose other settings than {found.reference}; {other.reference}, which has the same, cannot be compared yet."
    change = relative(shown, other.means[1]) if frame.scale.plain else f"{frame.scale.signed(shown)} points"
    return (
        f"It chose other settings than {found.reference}; beside {other.reference}, which has the same: {change} "
        f"({interval_text(frame, other, other.alone)}), {other.verdict.word}."
    )


def about_text(found: Comparison) -> str:
    """What a comparison is about, where that is not methods alone."""
    if found.about == SETTINGS:
        return f"It has the methods of {found.reference}: this compares settings ({' and '.join(found.confounds)}), not methods."
    return ""


def collapse_text(frame: Frame, found: Comparison) -> str:
    """The verdict without the runs that did not learn."""
    if found.without_collapsed is None:
        return ""
    kept, verdict = found.without_collapsed
    if kept.n == 0 or kept.p is None or not math.isfinite(kept.difference):
        left = f"{plural(kept.n, 'is', 'are')} left"
        return f"Without the seeds in which a run did not learn, {left}: too few to compare."
    size = _size(frame, found, found.shown(kept.difference))
    return f"Without the seeds in which a run did not learn (n = {kept.n}): {verdict.word}, {size}."


def _size(frame: Frame, found: Comparison, difference: float | None) -> str:
    """A signed difference: points, or of a plain number a share of the other arm's."""
    if frame.scale.plain:
        return relative(difference, found.means[1])
    return f"{frame.scale.signed(difference)} points"


def share_text(found: Comparison) -> str:
    """Where the uncertainty comes from, and so what would lessen it."""
    if found.seed_share is None or found.verdict.p is None or found.verdict.settled or found.role == COPY:
        return ""  # nothing that is added tells method and settings apart
    if found.found.n == 2:
        return ""  # two seeds say next to nothing about how much seeds matter
    seeds = round(100 * found.seed_share)
    unit = found.found.unit
    do = "add seeds" if seeds >= 67 else f"add test {unit}s" if seeds <= 33 else f"add seeds or test {unit}s"
    return f"Uncertainty: seeds {seeds} %, {unit}s {100 - seeds} %; {do}."


def improvement_text(found: Comparison) -> str:
    """How often a run of this arm is better than one of the other."""
    if found.improvement is None or found.found.n < 2:
        return ""
    n = found.found.n
    often = f"{100 * found.improvement:.0f} % of {n * n} pairs of runs (n = {n} each)"
    return f"A run of it is better than one of {found.reference} in {often}."
