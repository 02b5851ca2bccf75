"""Claims about anything but quality: speed, timed in turns; frozen parameters, counted; what a map was like.

A run's own clock is never asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

from fairtune.analysis.block_ratios import block_ratio
from fairtune.analysis.claim_answer import (
    CONTRADICTED,
    COUNTED,
    IMPLAUSIBLE,
    NOT_RUN,
    NOT_SEPARABLE,
    PERCENT,
    ROUNDS,
    SEEDS,
    SUPPORTED,
    TIMES,
    VARIATION,
    Answer,
    ClaimFigures,
)
from fairtune.analysis.maps import MapPass, map_passes
from fairtune.analysis.statistics import summarise
from fairtune.analysis.step_bounds import flops_of, lowest_ratio
from fairtune.analysis.timings import CLEAR, StepRatio
from fairtune.core.errors import FairtuneError
from fairtune.core.files import read_json
from fairtune.settings.claims import ABOUT, Claim

if TYPE_CHECKING:
    from fairtune.analysis.results import Results


WIDEST_USE = 20.0
"""Percent: a wider interval of how often a map was used says too little to support a figure within it."""
FEWEST_ROUNDS = 3
AA_FAILED = (
    "In the same rounds the reference was not found as fast as itself (A/A), so nothing follows from these times."
)
QUIETER, MORE_ROUNDS = "a timing experiment on a quieter machine", "more rounds, with `fairtune time --minutes`"


def answer_speed(results: Results, claim: Claim, allowed: float | None = None) -> Answer:
    """Answer how many times as fast a step is.

    Args:
        allowed: the highest speed-up that counted work allows, where it is known without a timing experiment.
    """
    arm = str(claim.arm)
    other = claim.than or results.primary(arm)
    if other is None:
        raise FairtuneError(f"faster: {arm} is what the others are compared with; say than which arm, with `than`.")
    timing = results.timing
    ratio = timing.between(arm, other) if timing is not None else None
    if timing is not None and results.primary(arm) == other:
        ratio = timing.ratios.get(arm, ratio)
    figures = None if ratio is None else _figures(ratio, results.confidence)
    floor = ratio.floor if ratio is not None else _lowest_counted(results, arm, other)
    highest = max((1 / floor if floor else 0.0), allowed or 0.0) or None
    if highest is not None and claim.factor > highest and claim.factor > 1:
        reason = f"Counted work allows {highest:.3f}x at the most, so {claim.faster} cannot come from the method."
        return Answer(claim, IMPLAUSIBLE, reason, results.study, figures)
    if timing is None or ratio is None or figures is None:
        return Answer(claim, NOT_RUN, f"{arm} and {other} were not timed in the same rounds.", results.study)
    if not timing.trusted:
        return Answer(claim, NOT_SEPARABLE, AA_FAILED, results.study, figures, QUIETER)
    if ratio.implausible:
        reason = "The measured ratio is faster than counted work allows, so something besides the method decided it."
        return Answer(claim, NOT_SEPARABLE, reason, results.study, figures, QUIETER)
    word, reason = _judge_factor(figures, claim)
    needed = MORE_ROUNDS if word == NOT_SEPARABLE else ""
    again = timing.again
    noise = f"A/A, {timing.reference} against itself: {again.ratio:.3f} ({again.low:.3f} to {again.high:.3f})"
    return Answer(claim, word, reason, results.study, figures, needed, (noise,))


def _lowest_counted(results: Results, arm: str, other: str) -> float | None:
    """The lowest ratio of step times that the cards of finished runs allow, however a step divides; None if it is not known.

    A step is passes and updates. Fewer matrix products shorten the one, fewer trained parameters the other, so no mixture of the
    two is shorter than the shorter of both.
    """
    cards = [_card(results, one) for one in (arm, other)]
    if None in cards or not math.isclose(results.step_factor(arm), results.step_factor(other)):
        return None
    ours, theirs = cards
    settings = [results.plan["arms"][one]["train"] for one in (arm, other)]
    bound = lowest_ratio(flops_of(ours["costs"]), flops_of(theirs["costs"]), *settings)
    if bound is None:
        return None
    trained = float(ours["parameters"]["trainable"] / max(1, theirs["parameters"]["trainable"]))
    return min(bound, trained)


def _card(results: Results, arm: str) -> Any:
    """What the first of an arm's finished runs that has a card started from."""
    cards = (read_json(run.folder.card) for run in results.finished(arm))
    return next((card for card in cards if card is not None and card.keys() >= {"costs", "parameters"}), None)


def _figures(ratio: StepRatio, level: float) -> ClaimFigures:
    """A ratio of times as a speed-up."""
    family, alone = ratio.family, ratio.found
    ends = [math.inf if end <= 0 else 1 / end for end in (family.high, family.low, alone.high, alone.low)]
    return ClaimFigures(
        1 / alone.ratio,
        ends[0],
        ends[1],
        (ends[2], ends[3]),
        TIMES,
        alone.n,
        ROUNDS,
        ratio.arm,
        ratio.other,
        None,
        level,
    )


def _judge_factor(figures: ClaimFigures, claim: Claim) -> tuple[str, str]:
    low, high, factor = figures.low or 0.0, figures.high or math.inf, claim.factor
    if high < factor:
        return CONTRADICTED, "The whole interval lies below the claimed figure."
    if claim.reading == ABOUT:
        if low > factor:
            return CONTRADICTED, "The whole interval lies above the claimed figure."
        if (factor != 1 and (low - 1) * (high - 1) <= 0) or abs(figures.value - 1) < CLEAR:
            return NOT_SEPARABLE, "The interval holds the claimed figure, and no change is clear."
        return SUPPORTED, "A change is clear, and the interval holds the claimed figure."
    if low >= factor:
        return SUPPORTED, "The whole interval reaches the claimed figure."
    return NOT_SEPARABLE, "The interval holds less than the claimed figure as well as more."


def answer_share(results: Results, claim: Claim) -> Answer:
    """Answer which share of the parameters an arm freezes, as its runs counted them."""
    arm = str(claim.arm)
    found = [run.result["parameters"] for run in results.finished(arm) if "parameters" in run.result]
    counted = found[0] if found else _timed_parameters(results, arm)
    if counted is None:
        return Answer(claim, NOT_RUN, f"No run of {arm} has counted its parameters.", results.study)
    total = int(counted["total"])
    frozen = total - int(counted["trainable"])
    word, reason = judge_share(claim, frozen, total)
    return Answer(claim, word, reason, results.study, share_figures(arm, frozen, total, results.confidence))


def judge_share(claim: Claim, frozen: int, total: int) -> tuple[str, str]:
    """A counted share beside the claimed one, to the digits that were claimed."""
    share, half_digit = claim.share
    counted = f"{frozen:,} of {total:,} parameters are frozen, which is {100 * frozen / total:.2f} %."
    if abs(frozen / total - share) <= half_digit + 1e-12:
        return SUPPORTED, f"Counted: {counted}"
    return CONTRADICTED, f"Counted, and it is another figure: {counted}"


def share_figures(arm: str, frozen: int, total: int, level: float) -> ClaimFigures:
    return ClaimFigures(100 * frozen / total, None, None, (None, None), PERCENT, total, COUNTED, arm, None, None, level)


def _timed_parameters(results: Results, arm: str) -> Mapping[str, int] | None:
    """What a timing session counted, where no run has finished."""
    return None if results.timing is None else results.timing.parameters(arm)


def _within_all(percent: float | None) -> float | None:
    """A share's interval ends where shares do."""
    return None if percent is None else min(100.0, max(0.0, percent))


def answer_map(results: Results, claim: Claim) -> Answer:
    """Answer what an arm's map was like in the end, over its seeds."""
    name, lowest, highest = claim.map_share
    read, of = _MAP_SHARES[name]
    passes = [map_passes(run.events) for run in results.finished(str(claim.arm))]
    shares = [100 * share for found in passes if found and (share := read(found[-1])) is not None]
    if not shares:
        return Answer(claim, NOT_RUN, f"No run of {claim.arm} recorded a map.", results.study)
    found = summarise(shares, results.confidence)
    low, high = _within_all(found.low), _within_all(found.high)
    figures = ClaimFigures(
        found.mean, low, high, (low, high), PERCENT, found.n, SEEDS, str(claim.arm), None, None, results.confidence, of
    )
    if low is None or high is None:
        return Answer(claim, NOT_SEPARABLE, "One seed has no interval.", results.study, figures, "a second seed")
    if high < lowest or low > highest:
        side = "below" if high < lowest else "above"
        return Answer(claim, CONTRADICTED, f"The whole interval lies {side} what is claimed.", results.study, figures)
    if lowest <= low and high <= highest:
        return Answer(claim, SUPPORTED, "The whole interval over seeds is as claimed.", results.study, figures)
    if lowest == highest and high - low <= WIDEST_USE:
        return Answer(claim, SUPPORTED, "The interval over seeds holds the claimed figure.", results.study, figures)
    reason = "The interval over seeds contains claimed values and others."
    return Answer(claim, NOT_SEPARABLE, reason, results.study, figures, "more seeds")


def _pruned(one: MapPass) -> float | None:
    return None if one.units is None or not one.units_at_start else 1 - one.units / one.units_at_start


_MAP_SHARES: dict[str, tuple[Callable[[MapPass], float | None], str]] = {
    "map_use": (lambda one: one.use, "of the training examples"),
    "pruned": (_pruned, "of the hidden units"),
    "reliability": (lambda one: one.mean_reliability, "mean reliability"),
}
"""How each share is read from the last labelling pass, and what it is a share of."""


def answer_spread(results: Results, claim: Claim) -> Answer:
    """Answer whether an arm's step times vary less, over the rounds of the timing experiment.

    How far a round's time is from its arm's median is compared round by round, and by ranks: what disturbs a round counts for both
    arms, and one spike decides nothing, as it would in a ratio of standard deviations. So it hardly sees rare slow steps.
    """
    arm, other, timing = str(claim.arm), str(claim.steadier_than), results.timing
    rounds = timing.round_seconds(arm, other) if timing is not None else None
    if timing is None or rounds is None or len(rounds[0]) < FEWEST_ROUNDS:
        reason = f"{arm} and {other} were not timed in the same {FEWEST_ROUNDS} rounds or more."
        return Answer(claim, NOT_RUN, reason, results.study)
    ours, theirs = ([abs(math.log(one / median(times))) for one in times] for times in rounds)
    found = block_ratio(ours, theirs, results.confidence)
    ends = (found.low, found.high)
    n = len(rounds[0])
    figures = ClaimFigures(found.ratio, *ends, ends, VARIATION, n, ROUNDS, arm, other, None, results.confidence)
    if not timing.trusted:
        return Answer(claim, NOT_SEPARABLE, AA_FAILED, results.study, figures, QUIETER)
    if found.high < 1:
        return Answer(claim, SUPPORTED, "The whole interval lies below 1.", results.study, figures)
    if found.low > 1:
        return Answer(claim, CONTRADICTED, "The whole interval lies above 1.", results.study, figures)
    return Answer(claim, NOT_SEPARABLE, "The interval contains 1.", results.study, figures, MORE_ROUNDS)
