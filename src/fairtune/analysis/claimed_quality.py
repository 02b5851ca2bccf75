"""Claims about quality, answered by the study's own fair comparison.

An arm is compared with its control, as verdicts do, whichever arm the claim names as the reference. Two arms that the plan does not
compare are compared all the same, if they differ in nothing but methods, and pay for it in the correction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairtune.analysis.arm_pairs import ArmPair, Comparison, is_simple_pair
from fairtune.analysis.claim_answer import (
    CONTRADICTED,
    NOT_RUN,
    NOT_SEPARABLE,
    PERCENT,
    SEEDS,
    SUPPORTED,
    Answer,
    ClaimFigures,
    unit_of,
    worst_of,
)
from fairtune.analysis.comparisons import compare_claimed
from fairtune.analysis.power import seeds_to_settle
from fairtune.analysis.power_sentences import describe_outlook
from fairtune.analysis.verdicts import BETTER, EQUIVALENT, INFERIOR, NOT_INFERIOR, SETTLED, WORSE
from fairtune.analysis.verdicts import NOT_SEPARABLE as OPEN
from fairtune.core.errors import FairtuneError
from fairtune.settings.claims import ABOUT, Claim, read_amount
from fairtune.settings.claims import POINTS as POINTS_UNIT
from fairtune.settings.metrics import METRICS, title_of

if TYPE_CHECKING:
    from fairtune.analysis.results import Results

Pair = tuple[str, str]
FEWEST_FOR_VERDICT = 3
"""Seeds; with fewer, the family's interval is all that the metric can be."""


def planned_comparison(results: Results, arm: str, other: str) -> tuple[Comparison, bool] | None:
    """The primary comparison that speaks about two arms, and whether it is the other arm's; None where the plan has none."""
    for one, base, turned in ((arm, other, False), (other, arm, True)):
        primary = results.primary(one)
        if primary is not None and (primary == base or base == results.reference):
            found = results.comparison(one)
            return None if found is None else (found, turned)
    return None


def unplanned_pairs(results: Results, claims: Sequence[Claim]) -> list[Pair]:
    """Pairs of arms that claims are about and the plan does not compare, each once."""
    pairs: list[Pair] = [pair for claim in claims for pair in claimed_pairs(claim)]
    return [pair for pair in dict.fromkeys(pairs) if planned_comparison(results, *pair) is None]


def claimed_pairs(claim: Claim) -> list[Pair]:
    """The comparisons that a claim stands or falls by: of an order, neighbours, and the first with the last."""
    if claim.rank is not None:
        ends = [(claim.rank[0], claim.rank[-1])] if len(claim.rank) > 2 else []
        return [*zip(claim.rank, claim.rank[1:], strict=False), *ends]
    return [(claim.arm, claim.other)] if claim.arm and claim.other else []


@dataclass(frozen=True)
class ClaimedEffect:
    """A comparison as a claim looks at it: everything in the claimed direction, on the scale on which differences are taken.

    Args:
        turned: the comparison is that of the other arm.
        better: whether the arm is claimed to be the better one.
        amount: the claimed figure; None where only a direction is claimed.
        low, high: the family's interval, widened to that of the matched control where there is one.
    """

    results: Results
    found: Comparison
    turned: bool
    better: bool
    amount: float | None
    low: float | None
    high: float | None

    @property
    def sign(self) -> int:
        """From the comparison's own difference to the claimed direction."""
        lower = METRICS[self.results.metric].lower_is_better
        return -1 if (self.turned ^ lower) == self.better else 1

    @property
    def value(self) -> float:
        return self.sign * self.found.found.difference

    @property
    def shown(self) -> int:
        """1 where the claimed direction is shown, -1 where the opposite is, 0 where neither is."""
        verdict, risk = self.found.verdict, 1 - self.results.confidence
        if verdict.word not in SETTLED or verdict.p is None or verdict.p >= risk:
            return 0
        return 1 if self.value > 0 else -1

    @property
    def obstacle(self) -> str:
        """Why nothing follows from this comparison, whatever its figures are; empty where something may."""
        verdict, found, registration = self.found.verdict, self.found, self.results.registration
        if verdict.word not in (*SETTLED, OPEN):
            return verdict.note or verdict.word
        if verdict.settled:
            return ""
        if not ArmPair(self.results, found.arm, found.reference).other_learned() and not is_simple_pair(
            self.results, found.arm, found.reference
        ):
            return f"{found.reference} did not learn, so nothing here compares methods"
        if found.missing:
            return f"it hangs on runs without a score: {', '.join(found.missing)}"
        if registration.dropped and not registration.reanalysed:
            return f"seeds with results were left out of the newest plan: {', '.join(map(str, registration.dropped))}"
        if registration.reference_gone is not None:
            return (
                f"{registration.reference_gone}, the reference that was planned, was taken out after results were known"
            )
        return ""

    def outlook(self) -> str:
        """What it would take to tell the claimed figure from what was found."""
        if self.amount is None or not self.shown:
            return self.found.verdict.note if self.found.verdict.word == OPEN else ""
        gain = self.found.found if self.sign > 0 else self.found.found.mirrored()
        moved = replace(gain, difference=gain.difference - self.amount)
        tests = max(1, sum(one.verdict.p is not None for one in self.results.comparisons))
        added = seeds_to_settle(moved, lambda _: (1 - self.results.confidence) / tests, None, gain.units)
        if added is None or added.kind == "margin":
            return "the difference is too near to the claimed figure for more seeds to tell them apart"
        return describe_outlook(added, gain.n, f"test {gain.unit}")

    def figures(self) -> ClaimFigures:
        found, metric = self.found, self.results.metric
        unit, turned = unit_of(metric), self.turned
        low, high = found.verdict.family if found.found.n >= FEWEST_FOR_VERDICT else (None, None)
        ends = [self._in_unit(end) for end in (found.found.difference, low, high, found.found.low, found.found.high)]
        value, low, high, first, last = ends
        if turned:
            low, high, first, last = high, low, last, first
        arm, against = (found.reference, found.arm) if turned else (found.arm, found.reference)
        return ClaimFigures(
            math.nan if value is None else value, low, high, (first, last), unit, found.found.n, SEEDS, arm, against,
            metric, self.results.confidence,
        )  # fmt: skip

    def _in_unit(self, value: float | None) -> float | None:
        """A value of the compared scale in the unit that claims have, arm minus the other."""
        if value is None or not math.isfinite(value):
            return None
        turned = -value if self.turned else value
        if METRICS[self.results.metric].ratios:
            return 100 * math.expm1(min(turned, 700.0))
        base = self.found.means[0 if self.turned else 1]
        if unit_of(self.results.metric) == PERCENT:
            return 100 * turned / abs(base) if base else None
        return 100 * turned


def look_at(results: Results, found: Comparison, turned: bool, better: bool, by: str | None) -> ClaimedEffect:
    """A comparison as a claim of a direction and an amount looks at it."""
    effect = ClaimedEffect(results, found, turned, better, None, None, None)
    known = [found, *([found.matched] if found.matched is not None else [])]
    ends = [
        (end, other) for end, other in (one.verdict.family for one in known) if end is not None and other is not None
    ]
    if ends:
        signed = [(low, high) if effect.sign > 0 else (-high, -low) for low, high in ends]
        effect = replace(effect, low=min(low for low, _ in signed), high=max(high for _, high in signed))
    return replace(effect, amount=_amount(effect, by)) if by is not None else effect


def _amount(effect: ClaimedEffect, by: str) -> float:
    """A claimed amount on the scale on which differences are taken."""
    value, unit = read_amount(by)
    metric = effect.results.metric
    facts = METRICS[metric]
    if unit == POINTS_UNIT:
        if facts.shown == "plain":
            raise FairtuneError(
                f"{by}: {title_of(metric)} is not in hundredths, so it has no points; write a share of the other arm's "
                f"figure, such as 5%."
            )
        return value / 100
    if not facts.ratios:
        return value / 100 * abs(effect.found.means[0 if effect.turned else 1])
    if effect.better != facts.lower_is_better:  # the figure rises
        return math.log1p(value / 100)
    if value >= 100:
        raise FairtuneError(f"{by}: {title_of(metric)} cannot fall by 100 % or more.")
    return -math.log1p(-value / 100)


def margin_of(results: Results, within: str) -> str | float:
    """A claim's own margin, as `compare.margin` would have it."""
    value, unit = read_amount(within)
    if unit == POINTS_UNIT and METRICS[results.metric].shown == "plain":
        raise FairtuneError(f"within: {within}: {title_of(results.metric)} has no points; write a share such as 5%.")
    return value / 100 if unit == POINTS_UNIT else f"{value:g}%"


def judge_effect(effect: ClaimedEffect, reading: str) -> tuple[str, str]:
    """The word for a claimed direction and amount, and why."""
    amount, low, high = effect.amount, effect.low, effect.high
    if effect.found.found.n == 0:
        return NOT_RUN, "No seed has a finished run of both arms."
    if obstacle := effect.obstacle:
        return NOT_SEPARABLE, f"The comparison shows nothing either way: {obstacle}."
    if effect.shown < 0:
        return CONTRADICTED, "The opposite direction is shown."
    if amount is None:
        if effect.shown > 0:
            return SUPPORTED, "The direction is shown; no amount was claimed."
        return NOT_SEPARABLE, "Neither direction is shown."
    if low is None or high is None:
        return NOT_SEPARABLE, "There is no interval."
    if high < amount:
        return CONTRADICTED, "The whole interval lies below the claimed figure."
    if reading == ABOUT and low > amount:
        return CONTRADICTED, "The direction is as claimed, and the whole interval lies above the claimed figure."
    if not effect.shown:
        return NOT_SEPARABLE, "The interval holds the claimed figure, and the direction is not shown."
    if reading == ABOUT:
        return SUPPORTED, "The direction is shown, and the interval holds the claimed figure."
    if low >= amount:
        return SUPPORTED, "The whole interval reaches the claimed figure."
    return NOT_SEPARABLE, "The direction is shown; the interval holds less than the claimed figure as well as more."


def judge_as_good(effect: ClaimedEffect) -> tuple[str, str]:
    """The word for a claim that an arm is as good as another, from a verdict that was made with the claim's margin."""
    word = effect.found.verdict.word
    if effect.found.found.n == 0:
        return NOT_RUN, "No seed has a finished run of both arms."
    if obstacle := effect.obstacle:
        return NOT_SEPARABLE, f"The comparison shows nothing either way: {obstacle}."
    good: tuple[str, ...] = (BETTER, NOT_INFERIOR, EQUIVALENT)
    lost = word == INFERIOR
    if effect.turned:  # the verdict is about the other arm, whose loss is this one's gain
        good, lost = (WORSE, INFERIOR, EQUIVALENT), _gains_beyond(effect)
    if word in good:
        return SUPPORTED, f"A loss beyond the margin is ruled out ({word})."
    if lost:
        return CONTRADICTED, "A loss beyond the margin is shown."
    return NOT_SEPARABLE, "A loss beyond the margin is neither shown nor ruled out."


def _gains_beyond(effect: ClaimedEffect) -> bool:
    """Whether the other arm is shown to be better by more than the margin."""
    margin, base = effect.found.margin, effect.found.means[1]
    if margin is None or effect.high is None:
        return False
    return effect.high < -(math.log1p(margin / base) if effect.found.ratios else margin)


def answer_quality(results: Results, claim: Claim, claimed: Sequence[Claim]) -> Answer:
    """Answer a claim about two arms or an order of several.

    Args:
        results: by the claim's metric, with the claim's margin.
        claimed: all claims that are asked of these results, by which the correction is counted.
    """
    effects = [_effect(results, claim, pair, claimed) for pair in claimed_pairs(claim)]
    if claim.rank is not None:
        return _answer_rank(results, claim, effects)
    (effect,) = effects
    if claim.as_good_as is not None:
        word, reason = judge_as_good(effect)
    else:
        word, reason = judge_effect(effect, claim.reading)
    figures = effect.figures() if effect.found.found.n else None
    reason += _other_partner(effect, claim)
    needed = effect.outlook() if word == NOT_SEPARABLE and not effect.obstacle else ""
    verdict = effect.found.verdict
    notes = (verdict.note,) if verdict.settled and verdict.note else ()
    return Answer(claim, word, reason, results.study, figures, needed, notes)


def _effect(results: Results, claim: Claim, pair: Pair, claimed: Sequence[Claim]) -> ClaimedEffect:
    found, turned = planned_comparison(results, *pair) or (_unplanned(results, pair, claimed), False)
    return look_at(results, found, turned, claim.worse_than is None, claim.by)


def _unplanned(results: Results, pair: Pair, claimed: Sequence[Claim]) -> Comparison:
    pairs = [*dict.fromkeys([*unplanned_pairs(results, claimed), pair])]
    return next(one for one in compare_claimed(results, pairs) if (one.arm, one.reference) == pair)


def _other_partner(effect: ClaimedEffect, claim: Claim) -> str:
    """A sentence where the fair partner is not the one that the claim names."""
    arm, against = (claim.other, claim.arm) if effect.turned else (claim.arm, claim.other)
    found, matched = effect.found, effect.found.matched
    text = ""
    if found.reference != against:
        text += f" {arm} is compared with {found.reference}, which has its settings; {against} has not."
    if matched is not None:
        text += (
            f" Beside {matched.reference}, which has the settings that {found.arm} chose, the verdict is: "
            f"{matched.verdict.word}."
        )
    return text


def _answer_rank(results: Results, claim: Claim, effects: Sequence[ClaimedEffect]) -> Answer:
    parts = []
    for effect, (arm, other) in zip(effects, claimed_pairs(claim), strict=True):
        word, reason = judge_effect(effect, claim.reading)
        value = f", {effect.figures()}" if effect.found.found.n else ""
        parts.append((word, f"{arm} > {other}: {word}{value}", reason))
    words = [word for word, _, _ in parts]
    told = "; ".join(text for _, text, _ in parts)
    word = worst_of(words)
    why = {
        SUPPORTED: "Every step of the order is shown",
        CONTRADICTED: "A step of the order is shown the other way round",
        NOT_RUN: "Runs are missing",
    }.get(word, f"{words.count(SUPPORTED)} of {len(words)} steps of the order are shown, none the other way round")
    return Answer(claim, word, f"{why}: {told}.", results.study)
