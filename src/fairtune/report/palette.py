"""Colours that readers with any colour vision can tell apart (Okabe and Ito), each beside a second mark."""

from __future__ import annotations

from typing import Any

from fairtune.analysis.verdicts import BETTER, INFERIOR, NONE, NOT_INFERIOR, NOT_SEPARABLE, WORSE

BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
GREY = "#808080"
ARMS = (GREY, BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
"""The reference, usually the first arm, in grey."""
DASHES = ("-", "--", ":", "-.")
"""A second mark once the colours are used up."""
VERDICTS = {BETTER: GREEN, WORSE: VERMILION, INFERIOR: VERMILION, NOT_INFERIOR: BLUE, NOT_SEPARABLE: GREY, NONE: GREY}


def arm_style(place: int) -> dict[str, Any]:
    """Colour and dash of the arm at a place."""
    return {"color": ARMS[place % len(ARMS)], "linestyle": DASHES[place // len(ARMS) % len(DASHES)]}
