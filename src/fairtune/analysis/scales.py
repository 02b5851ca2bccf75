"""How a metric is shown, decided in one place: a share in percent, a coefficient in hundredths, or the plain number."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairtune.core.numbers import DASH, MINUS, percent, points
from fairtune.settings.metrics import METRICS

DIGITS, MOST_PLACES = 4, 6
LONGEST = 1e8
"""From here on digits say nothing, and powers of ten are shown."""


@dataclass(frozen=True)
class Scale:
    """A metric's own way of being shown.

    Args:
        unit: beside a figure; empty for a plain number.
        factor: from the metric to what is drawn.
        plain: no hundredths; differences stand beside the change in percent, as margins are stated.
    """

    title: str
    unit: str
    factor: float
    plain: bool
    lower_is_better: bool

    @property
    def heading(self) -> str:
        """The metric at the head of a column."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def axis(self) -> str:
        """The metric beside an axis."""
        return f"{self.title}, lower is better" if self.lower_is_better else self.heading

    @property
    def difference(self) -> str:
        """What differences are counted in."""
        return self.title if self.plain else "points"

    def value(self, value: float | None, like: float | None = None) -> str:
        """A figure: 84.20 of a share; 4.271, 18.36 or 434.3 of a plain number.

        Args:
            like: a plain figure beside which more places would be too many.
        """
        if not self.plain:
            return percent(value)
        if value is None or math.isnan(value):
            return DASH
        if math.isinf(value):
            return "∞"
        if abs(value) >= LONGEST:
            return f"{value:.3g}".replace("e+", "e").replace("-", MINUS)
        return f"{value:,.{_places(value, like)}f}".replace("-", MINUS)

    def signed(self, value: float | None, like: float | None = None) -> str:
        """A difference with its sign."""
        if not self.plain:
            return points(value)
        if value is None or not math.isfinite(value):
            return DASH
        return _signed(value, _places(value, like))

    def distance(self, value: float | None, like: float | None = None) -> str:
        """A difference without its sign."""
        return self.value(None if value is None else abs(value), like)

    def half_width(self, low: float | None, high: float | None, like: float | None = None) -> str:
        return DASH if low is None or high is None else self.value((high - low) / 2, like)


def scale_of(metric: str) -> Scale:
    facts = METRICS.get(metric)
    if facts is None:
        return Scale(metric, "%", 100, plain=False, lower_is_better=False)
    unit = {"percent": "%", "x100": "× 100", "plain": facts.unit}[facts.shown]
    return Scale(facts.title, unit, facts.factor, facts.shown == "plain", facts.lower_is_better)


def relative(value: float | None, base: float | None) -> str:
    """A change as a signed share of what it changes: +9.8 %."""
    if value is None or not base or not math.isfinite(value) or not math.isfinite(base):
        return DASH
    found = 100 * value / base
    return f"{_signed(found, 0 if abs(found) >= 100 else 1 if abs(found) >= 1 else 2)} %"


def _places(value: float, like: float | None = None) -> int:
    """So many that there are four digits of the rounded value, and no more than another figure has."""
    if like is not None:
        return min(_places(value) if value else MOST_PLACES, _places(like))
    if not math.isfinite(value) or value == 0:
        return DIGITS - 1
    exponent = int(f"{value:.{DIGITS - 1}e}".partition("e")[2])
    return min(MOST_PLACES, max(0, DIGITS - 1 - exponent))


def _signed(value: float, places: int) -> str:
    if abs(value) >= LONGEST:
        return f"{value:+.3g}".replace("e+", "e").replace("-", MINUS)
    text = f"{value:+,.{places}f}"
    return text[1:] if not text.strip("+-0.,") else text.replace("-", MINUS)
