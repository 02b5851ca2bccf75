"""What a timing experiment comes to, in sentences."""

from __future__ import annotations

from fairtune.analysis.timings import CLEAR, StudyTiming
from fairtune.core.numbers import confidence

TELLING = 0.15
"""An interval's half-width as a share of the saving, up to which the saving is worth dividing by its bound."""


def effort_sentence(timing: StudyTiming, wanted: float | None = None) -> str:
    """How much was measured, by which clock, and how precise it is."""
    clock = (
        "the time that the process had the processor, so what others took is not in it"
        if timing.processor
        else "the clock on the wall, with the device waited for"
    )
    sessions = "1 session" if timing.sessions == 1 else f"{timing.sessions} sessions, all counted"
    text = (
        f"{timing.rounds} rounds in {timing.seconds:.0f} s ({sessions}): in each, every arm steps twice, in an order that "
        "is drawn and "
        f"then reversed, on the same batches. Times are {clock}. The widest interval is ±{_percent(timing.precision)}"
    )
    if timing.interrupted:
        text += "; it was stopped by hand"
    elif wanted is not None:
        reached = timing.precision <= wanted
        text += f"; asked for was ±{_percent(wanted)}" + (
            "" if reached else ", which took more time than was allowed (--minutes)"
        )
    if timing.elsewhere:
        text += f". Sessions on other machines or with other threads, which do not count: {timing.elsewhere}"
    return text + "."


def aa_sentence(timing: StudyTiming) -> str:
    """Whether the reference was found as fast as itself."""
    again = timing.again
    level = f"{again.ratio:.3f} ({confidence(timing.confidence)}: {again.low:.3f} to {again.high:.3f})"
    if timing.trusted:
        near = "It holds 1, as it must." if again.holds_one else "That is within 1 % of 1, which is no change."
        return f"A/A: {timing.reference} against a second copy of itself in the same rounds: {level}. {near}"
    return (
        f"A/A: {timing.reference} against a second copy of itself in the same rounds: {level}. It does not hold 1, so "
        "something besides the arms decides the times here, and nothing follows from them. Time it again, on a quieter machine if "
        "you can: sessions count together."
    )


def implausible_sentences(timing: StudyTiming) -> list[str]:
    """A caution for every arm that is faster than counting allows."""
    return [
        f"Implausible: {one.arm} takes {one.found.ratio:.3f} of {one.other}'s time per step ({one.found.low:.3f} to "
        f"{one.found.high:.3f}), and its matrix products and updates allow {one.floor:.3f} at the lowest. Likely reasons: "
        "another batch "
        "size or length, work that was left out (a loss, a gradient that is not computed), another precision or kernel, "
        "or other "
        "work on the machine. Do not report it as the method's speed-up."
        for one in timing.ratios.values()
        if one.implausible and one.floor is not None
    ]


def share_of_bound(timing: StudyTiming) -> list[str]:
    """How much of what freezing can save is saved; the share itself only where the measurement can tell it."""
    found = []
    for one in timing.ratios.values():
        if (
            one.bound is None
            or one.reached is None
            or 1 - one.bound < CLEAR
            or (one.change or 0) >= 0
            or one.implausible
        ):
            continue
        saving, ends = 1 - one.found.ratio, (1 - one.found.high, 1 - one.found.low)
        share = (
            f"{100 * one.reached:.0f} % of its bound"
            if one.found.half_width <= TELLING * saving
            else "measured too loosely to say what share of its bound that is"
        )
        found.append(
            f"{one.arm} saves {_percent(saving)} of a step ({100 * ends[0]:.1f} to {100 * ends[1]:.1f}) where matrix "
            "products allow "
            f"{_percent(1 - one.bound)}: {share}."
        )
    return found


def _percent(share: float) -> str:
    return "unknown" if share == float("inf") else f"{100 * share:.1f} %"
