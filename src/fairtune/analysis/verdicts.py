"""Verdicts: what the evidence supports about an arm, in words, and no more than that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtune.analysis.statistics import PairedDifference, holm, seeds_needed

BETTER, WORSE, NOT_INFERIOR, NOT_SEPARABLE, NONE = "better", "worse", "not inferior", "not separable", "no verdict"


@dataclass(frozen=True)
class Verdict:
    """What one comparison supports.

    Args:
        p: of no difference, corrected by Holm over all comparisons of the study.
        note: what is missing, or what to mind.
    """

    word: str
    p: float | None
    note: str

    def __str__(self) -> str:
        return f"{self.word} ({self.note})" if self.note else self.word


def judge(found: Sequence[PairedDifference], margin: float | None, confidence: float) -> list[Verdict]:
    """A verdict for each comparison, all corrected together.

    Args:
        margin: a loss that would not matter, in the metric's unit.
    """
    corrected = holm([f.p for f in found])
    # A one-sided test at half the risk, as is usual for non-inferiority; doubled so that one threshold serves both.
    within = holm(
        [None if margin is None or (p := f.chance_below(-margin)) is None else min(1.0, 2 * p) for f in found]
    )
    risk = 1 - confidence
    return [_judge(f, p, w, margin, risk) for f, p, w in zip(found, corrected, within, strict=True)]


def _judge(
    found: PairedDifference, p: float | None, within: float | None, margin: float | None, risk: float
) -> Verdict:
    if p is None:
        count = "no run" if found.n == 0 else "one run only"
        return Verdict(NONE, None, f"{count} to compare; two seeds or more are needed")
    if p < risk and found.difference > 0:
        return Verdict(BETTER, p, "")
    if within is not None and within < risk:
        return Verdict(NOT_INFERIOR, p, "lower, but by less than the margin" if p < risk else "")
    if p < risk:
        return Verdict(WORSE, p, "")
    return Verdict(NOT_SEPARABLE, p, _missing(found, margin))


def _missing(found: PairedDifference, margin: float | None) -> str:
    """How many more seeds could settle it, if the difference stays as it is."""
    targets = [abs(found.difference)]
    if margin is not None:
        targets.append(found.difference + margin)
    needed = [n for target in targets if (n := seeds_needed(found, target)) is not None]
    if not needed:
        return "more seeds alone will not settle it; it takes more test examples"
    more = min(needed) - found.n
    return (
        f"about {more} more {'seed' if more == 1 else 'seeds'} could settle it"
        if more > 0
        else "close to the line once corrected for the number of comparisons; more seeds could settle it"
    )
