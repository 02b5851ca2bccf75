"""Verdicts: what the evidence supports about an arm, in words, and no more than that; and which arms lack one method of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtune.analysis.statistics import PairedDifference, holm, seeds_needed

BETTER, WORSE, INFERIOR = "better", "worse", "inferior"
NOT_INFERIOR, NOT_SEPARABLE, NONE = "not inferior", "not separable", "no verdict"


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


def judge(
    found: Sequence[PairedDifference],
    margin: float | Sequence[float | None] | None,
    confidence: float,
    lower_is_better: bool = False,
) -> list[Verdict]:
    """A verdict for each comparison, all corrected together.

    Args:
        margin: a loss that would not matter, in the metric's unit; one for all comparisons, or one for each.
    """
    gains = [f.mirrored() if lower_is_better else f for f in found]
    margins = list(margin) if isinstance(margin, Sequence) else [margin] * len(gains)
    evidence = zip(
        gains,
        holm([gain.p for gain in gains]),
        holm([_chance_beyond(gain, own) for gain, own in zip(gains, margins, strict=True)]),
        holm([_chance_within(gain, own) for gain, own in zip(gains, margins, strict=True)]),
        margins,
        strict=True,
    )
    risk = 1 - confidence
    behind = "higher" if lower_is_better else "lower"
    return [_judge(gain, p, beyond, within, own, risk, behind) for gain, p, beyond, within, own in evidence]


def _chance_beyond(gain: PairedDifference, margin: float | None) -> float | None:
    """p of a loss of the margin or more: a one-sided test at half the risk, as is usual for non-inferiority.

    Doubled, so that one threshold serves both this and the two-sided test.
    """
    p = None if margin is None else gain.chance_below(-margin)
    return None if p is None else min(1.0, 2 * p)


def _chance_within(gain: PairedDifference, margin: float | None) -> float | None:
    """p of a loss of the margin or less, in the same way."""
    p = None if margin is None else gain.mirrored().chance_below(margin)
    return None if p is None else min(1.0, 2 * p)


def _judge(
    gain: PairedDifference,
    p: float | None,
    beyond: float | None,
    within: float | None,
    margin: float | None,
    risk: float,
    behind: str,
) -> Verdict:
    if gain.trouble:
        return Verdict(NONE, None, gain.trouble)
    if p is None:
        count = "no run" if gain.n == 0 else "one run only"
        return Verdict(NONE, None, f"{count} to compare; two seeds or more are needed")
    if p < risk and gain.difference > 0:
        return Verdict(BETTER, p, "")
    if beyond is not None and beyond < risk:
        return Verdict(NOT_INFERIOR, p, f"{behind}, but by less than the margin" if p < risk else "")
    if within is not None and within < risk:
        return Verdict(INFERIOR, p, "")
    if p < risk:
        return Verdict(WORSE, p, "" if margin is None else "not shown to exceed the margin")
    return Verdict(NOT_SEPARABLE, p, _missing(gain, margin))


def _missing(gain: PairedDifference, margin: float | None) -> str:
    """How many more seeds could settle it, if the difference stays as it is."""
    targets = [abs(gain.difference)]
    if margin is not None:
        targets.append(gain.difference + margin)
    needed = [n for target in targets if (n := seeds_needed(gain, target)) is not None]
    if not needed:
        return f"more seeds alone will not settle it; it takes more test {gain.unit}s"
    more = min(needed) - gain.n
    return (
        f"about {more} more {'seed' if more == 1 else 'seeds'} could settle it"
        if more > 0
        else "close to the line once corrected for the number of comparisons; more seeds could settle it"
    )


Methods = Sequence[Mapping[str, Any]]
"""An arm's methods as a plan has them: each by its name with all its settings."""


def left_out_pairs(arms: Mapping[str, Methods], reference: str) -> list[tuple[str, str]]:
    """Arms with two methods or more, each with every other arm that has all of them but one, in the same order.

    The reference is not among the others: what is compared with it stands elsewhere.
    """
    return [
        (arm, other)
        for arm in arms
        for other in arms
        if arm != other != reference and left_out_method(arms[arm], arms[other]) is not None
    ]


def left_out_method(whole: Methods, part: Methods) -> str | None:
    """The one method of an arm that the other lacks; None if that is not the difference between them."""
    if not whole or not part or len(whole) != len(part) + 1:
        return None
    places = [place for place in range(len(whole)) if [*whole[:place], *whole[place + 1 :]] == list(part)]
    return next(iter(whole[places[0]])) if places else None
