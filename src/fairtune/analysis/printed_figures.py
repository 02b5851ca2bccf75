"""Figures as a paper prints them: read from a line of text, and held against what a number of test examples can give.

An accuracy on n examples is a multiple of 1/n, and the mean of k such accuracies one of 1/(k n). Everything here is exact: a figure
is a decimal number, and what it may have been rounded from are fractions.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from fairtune.core.errors import FairtuneError, shown
from fairtune.core.numbers import MINUS
from fairtune.settings.metrics import METRICS

LONGEST_LINE, MOST_DIGITS = 200, 12
MOST_SEEDS_TRIED = 10
"""Numbers of seeds that are tried where a figure is impossible with the one that was named."""
ASIDE = "give one or two as they are printed, such as '93.12 vs 91.28', '93.12±0.3 vs 91.28±0.5' or '93.12'"
_NUMBER = r"[-+\u2212]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_PERCENT = r"\s*%?"
_SPREAD = rf"(?:\s*(?:±|\+-|\+/-)\s*({_NUMBER}){_PERCENT}|\s*\(\s*(?:±|\+-|\+/-)?\s*({_NUMBER}){_PERCENT}\s*\))?"
_FIGURE = re.compile(rf"\s*({_NUMBER})\s*(%)?{_SPREAD}\s*(%)?")
_BETWEEN = re.compile(r"\s*(?:vs\.?|v\.|versus|against|and|[,;|/])\s+|\s*(?:vs\.?|versus|[;|/])\s*|\s+", re.IGNORECASE)


@dataclass(frozen=True)
class PrintedFigure:
    """A score as it is printed.

    Args:
        text: the number as it was written, without its unit.
        percent: the score in hundredths, whatever it was written in.
        places: digits after the point once it is in hundredths; fewer than none for 0.9.
        spread: the deviation printed with it, in hundredths.
    """

    text: str
    percent: Fraction
    places: int
    spread: float | None = None

    @property
    def step(self) -> Fraction:
        """What its last digit counts, in hundredths: 93.12 has 0.01."""
        return Fraction(10) ** -self.places

    @property
    def share(self) -> float:
        return float(self.percent / 100)

    @property
    def value(self) -> float:
        """In hundredths."""
        return float(self.percent)

    def __str__(self) -> str:
        return in_hundredths(self.percent, self.places)


@dataclass(frozen=True)
class Granularity:
    """Which numbers of correct answers a printed figure can stand for.

    Args:
        total: answers in all: test examples, times seeds where the figure is a mean over them.
        low: the least number of correct ones that is printed so; above `high` if there is none.
        cut: a number that is printed so if digits are cut off rather than rounded; only where rounding gives none.
        below: the nearest possible figure below, as it would be printed; with `above` where there is none.
        share: of all figures with so many digits, how many can be printed at all.
        seeds: numbers of seeds with whose mean it would be possible; only where it is not.
    """

    total: int
    low: int
    high: int
    cut: int | None = None
    below: str = ""
    above: str = ""
    share: float = 1.0
    seeds: tuple[int, ...] = ()

    @property
    def possible(self) -> bool:
        return self.low <= self.high

    @property
    def says_something(self) -> bool:
        """Whether there are figures that could not be printed."""
        return self.share < 1


def read_figures(line: str, metric: str = "accuracy") -> tuple[PrintedFigure, ...]:
    """One or two figures: `93.12 vs 91.28`, `.9312 .9128`, `93.12% vs 91.28%`, `93.12±0.3`; shares become hundredths.

    Raises:
        FairtuneError: what is wrong with the line, in a sentence.
    """
    if len(line) > LONGEST_LINE:
        raise FairtuneError(f"the figures are {len(line):,} characters long; {ASIDE}.")
    if re.search(r"[0-9],[0-9]", line):
        raise FairtuneError(f"{shown(line)}: write a decimal point, not a comma, and a space between two figures.")
    parts = _split(line)
    marked = [unit for _, _, unit in parts]
    if any(marked) and not all(marked):
        raise FairtuneError(f"{shown(line)}: one figure is in percent and the other has no unit; write both alike.")
    small = [abs(Decimal(number)) <= 1 for number, _, _ in parts if Decimal(number)]  # 0 is 0 on either scale
    if any(small) and not all(small) and not any(marked):
        raise FairtuneError(
            f"{shown(line)}: one figure looks like a share of one and the other like percent; write both alike, or add %."
        )
    factor = 1 if any(marked) or not all(small) else 100
    figures = tuple(_figure(number, spread, factor) for number, spread, _ in parts)
    for figure in figures:
        _require_possible(figure, metric)
    return figures


def _split(line: str) -> list[tuple[str, str | None, bool]]:
    """The number, the deviation and whether a % is there, of each figure."""
    found: list[tuple[str, str | None, bool]] = []
    place = 0
    while place < len(line.rstrip()):
        match = _FIGURE.match(line, place)
        if match is None:
            raise FairtuneError(f"{shown(line)} is not one figure or two; {ASIDE}.")
        number, sign, spread, in_brackets, late_sign = match.groups()
        found.append((_plain(number), _plain(spread or in_brackets or "") or None, bool(sign or late_sign)))
        place = match.end()
        rest = line[place:]
        gap = _BETWEEN.match(rest)
        place += gap.end() if gap else 0
        unfinished = gap is not None and gap[0].strip() and place >= len(line.rstrip())
        if unfinished or (rest and gap is None and not line[:place].endswith((" ", ")"))):
            raise FairtuneError(f"{shown(line)} is not one figure or two; {ASIDE}.")
    if not 1 <= len(found) <= 2:
        count = "no figure" if not found else f"{len(found)} figures"
        raise FairtuneError(f"{shown(line)} has {count}; {ASIDE}.")
    if any(len(re.sub(r"\D", "", part or "")) > MOST_DIGITS for entry in found for part in entry[:2]):
        raise FairtuneError(f"{shown(line)}: a figure has at most {MOST_DIGITS} digits.")
    return found


def _plain(number: str) -> str:
    return number.replace("\u2212", "-")


def _figure(number: str, spread: str | None, factor: int) -> PrintedFigure:
    exact = Decimal(number)
    return PrintedFigure(
        number.removeprefix("+"),
        Fraction(exact) * factor,
        -int(exact.as_tuple().exponent) - (2 if factor == 100 else 0),
        None if spread is None else float(Fraction(Decimal(spread)) * factor),
    )


def _require_possible(figure: PrintedFigure, metric: str) -> None:
    known = METRICS[metric]
    low, high = (100 * bound for bound in known.bounds)
    if not low <= figure.percent <= high:
        raise FairtuneError(
            f"{figure.text} is not possible: {known.title} lies between {low:g} and {high:g} (or {low / 100:g} and {high / 100:g})."
        )
    if figure.spread is not None and not 0 <= figure.spread <= 100:
        raise FairtuneError(
            f"{figure.text}: a deviation of {figure.spread:g} points cannot be; it lies between 0 and 100."
        )


def find_counts(figure: PrintedFigure, examples: int, seeds: int = 1) -> Granularity:
    """Which numbers of correct answers a printed accuracy can stand for.

    Halves count as rounded up or down, as programs differ in it.

    Args:
        seeds: that the figure is the mean over.
    """
    total = examples * seeds
    low, high = _range(figure, total)
    share = min(1.0, float((total + 1) / (100 / figure.step + 1)))
    if low <= high:
        return Granularity(total, low, high, share=share)
    cut = _floor(figure.percent + figure.step, total)
    is_cut = figure.percent <= Fraction(100 * cut, total) < figure.percent + figure.step
    others = [k for k in range(1, MOST_SEEDS_TRIED + 1) if k != seeds and _tells(figure, examples * k)]
    return Granularity(
        total,
        low,
        high,
        cut if is_cut else None,
        in_hundredths(Fraction(100 * (low - 1), total), figure.places),
        in_hundredths(Fraction(100 * low, total), figure.places),
        share,
        tuple(k for k in others if _is_possible(figure, examples * k)),
    )


def _range(figure: PrintedFigure, total: int) -> tuple[int, int]:
    half = figure.step / 2
    low = max(0, math.ceil((figure.percent - half) * total / 100))
    return low, min(total, _floor(figure.percent + half, total))


def _floor(percent: Fraction, total: int) -> int:
    return math.floor(percent * total / 100)


def _tells(figure: PrintedFigure, total: int) -> bool:
    """Whether fewer than half of all figures with so many digits are possible."""
    return 2 * total < 100 / figure.step


def _is_possible(figure: PrintedFigure, total: int) -> bool:
    low, high = _range(figure, total)
    return low <= high


def in_hundredths(percent: Fraction, places: int) -> str:
    """A figure with so many digits after the point."""
    return f"{float(percent):.{max(0, places)}f}".replace("-", MINUS)
