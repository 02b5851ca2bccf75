"""Colours and letters of classes, so that a map can be read with any colour vision and in a grey print."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

import numpy as np
import numpy.typing as npt
from matplotlib.colors import to_rgb

from fairtune.report.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

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
    """A colour a class, [classes, 3]; from the eighth on they come again, darker, and letters tell them apart."""
    rounds = np.arange(classes) // len(CLASSES)
    colours = np.array([to_rgb(CLASSES[place % len(CLASSES)]) for place in range(classes)])
    darker: Colours = colours * (DARKER**rounds)[:, None]
    return darker


def class_letters(classes: Sequence[str]) -> list[str]:
    """A short sign a class: first letters where they differ, else A, B, C ..., or numbers where letters run out."""
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
