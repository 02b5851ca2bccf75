"""Colours that readers with any colour vision can tell apart (Okabe and Ito), each beside a second mark."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.analysis.verdicts import (
    BETTER,
    EQUIVALENT,
    INFERIOR,
    NONE,
    NOT_INFERIOR,
    NOT_SEPARABLE,
    NOT_SHOWN,
    WORSE,
)

BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
GREY = "#808080"
ARMS = (GREY, BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
"""The reference, usually the first arm, in grey."""
DASHES = ("-", "--", ":", "-.")
"""A second mark once the colours are used up."""
VERDICTS = {
    BETTER: GREEN, WORSE: VERMILION, INFERIOR: VERMILION, NOT_INFERIOR: BLUE, EQUIVALENT: BLUE, NOT_SEPARABLE: GREY,
    NOT_SHOWN: GREY, NONE: GREY,
}  # fmt: skip


def arm_style(place: int) -> dict[str, Any]:
    """Colour and dash of the arm at a place."""
    return {"color": ARMS[place % len(ARMS)], "linestyle": DASHES[place // len(ARMS) % len(DASHES)]}


YELLOW = "#F0E442"
CLASSES = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW)
"""The first two, which most tasks have, differ in lightness as well."""
SHADES = "cividis"
"""Runs from dark to light evenly, for any colour vision and in grey."""
DARKER = 0.55
FAINTEST = 0.22
"""How strong the colour of a cell is whose examples have nothing but chance in common."""
BLACK, WHITE = "#111111", "#ffffff"
Colours = npt.NDArray[np.float64]


def class_colours(classes: int) -> Colours:
    """One colour per class, [classes, 3]; from the eighth on they come again, darker, and letters tell them apart."""
    rounds = np.arange(classes) // len(CLASSES)
    colours = np.array([_rgb(CLASSES[place % len(CLASSES)]) for place in range(classes)])
    darker: Colours = colours * (DARKER**rounds)[:, None]
    return darker


def hexadecimal(colour: npt.NDArray[np.floating]) -> str:
    """A colour as pages write it."""
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour.tolist())


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))


def class_letters(classes: Sequence[str]) -> list[str]:
    """One short sign per class: first letters where they differ, else A, B, C ..., or numbers where letters run out."""
    first = [name.strip()[:1].upper() for name in classes]
    if len(set(first)) == len(first) and all(letter.isalpha() for letter in first):
        return first
    if len(classes) <= len(ascii_uppercase):
        return list(ascii_uppercase[: len(classes)])
    return [str(place) for place in range(len(classes))]


def strength(reliability: npt.NDArray[np.floating], classes: int) -> Colours:
    """How strong a cell's colour is: faint where its majority is no more than chance, full where all examples agree."""
    chance = 1 / max(2, classes)
    above = np.clip((np.asarray(reliability, dtype=np.float64) - chance) / (1 - chance), 0, 1)
    return FAINTEST + (1 - FAINTEST) * above


def faded(colours: Colours, strengths: Colours) -> Colours:
    """Colours mixed with white."""
    by = strengths[..., None]
    mixed: Colours = 1 - by * (1 - colours)
    return mixed


def ink_on(colours: Colours) -> list[str]:
    """Black or white, whichever can be read on each colour."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    light = linear[..., :3] @ np.array([0.2126, 0.7152, 0.0722])
    return [BLACK if value > 0.26 else WHITE for value in np.ravel(light)]
