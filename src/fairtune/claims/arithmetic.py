"""Claims that need no runs: counted parameters and matrix products, and baselines beside published bands."""

from __future__ import annotations

import math

from fairtune.analysis.claim_answer import IMPLAUSIBLE, Answer
from fairtune.analysis.claimed_costs import judge_share, share_figures
from fairtune.claims.published import BandCheck, CountedWork
from fairtune.settings.bands import Band, find_band

LEVEL, Z = 0.95, 1.96
FAR = 2.0
"""A baseline that lies so many half-widths below the lowest of its bands is not explained by the luck of examples and seeds."""


def answer_counted(counted: CountedWork) -> Answer | None:
    """The answer that counting gives by itself; None where it only allows what is claimed."""
    claim = counted.claim
    if claim.frozen is not None:
        word, reason = judge_share(claim, counted.frozen, counted.total)
        figures = share_figures(counted.arm, counted.frozen, counted.total, LEVEL)
        return Answer(claim, word, reason, "", figures, command=counted.command)
    saved, needed = 1 - 1 / counted.allowed, 1 - 1 / claim.factor
    if claim.factor <= counted.allowed:
        return None
    reason = (
        f"It would have to save {100 * needed:.1f} % of a step, and fewer matrix products can save {100 * saved:.1f} % of it at "
        f"the most ({counted.allowed:.3f}x, counted on {counted.model})."
    )
    return Answer(claim, IMPLAUSIBLE, reason, "", command=counted.command)


def counted_sentence(counted: CountedWork) -> str:
    """What was counted, where that decides nothing by itself."""
    return (
        f"Counting alone allows it: fewer matrix products can make a step of {counted.model} up to {counted.allowed:.3f}x as fast "
        f"(`{counted.command}`)."
    )


def bands_of(check: BandCheck) -> list[Band]:
    """The bands that a check names and that are known."""
    found = [find_band(one.model, one.task, check.metric) for one in check.like]
    return [band for band in found if band is not None]


def judge_band(check: BandCheck) -> tuple[str, str]:
    """A word where the baseline is far from every band, empty where it is not; and what lies where."""
    bands = bands_of(check)
    low, high = min(band.low for band in bands), max(band.high for band in bands)
    half = Z * math.sqrt(check.value * (1 - check.value) / check.examples)
    names = "; ".join(f"{band.model} on {band.task} {band.figures} ({band.split})" for band in bands)
    about = f"published for healthy baselines: {names}"
    if check.value < low - FAR * half:
        return IMPLAUSIBLE, (
            f"Its baseline of {check.figure} lies {100 * (low - check.value):.1f} points below the lowest of its band, and "
            f"{check.examples:,} examples account for ±{100 * half:.1f} ({about}). What beats such a baseline is not "
            "shown to beat a healthy one."
        )
    if low <= check.value <= high:
        return "", f"Its baseline of {check.figure} lies in its band ({about})."
    side = "below" if check.value < low else "above"
    return "", f"Its baseline of {check.figure} lies {side} its band, by less than would rule it out ({about})."
