"""The answer to a claim: a word, the figures it rests on, and what to mind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fairtune.core.numbers import MINUS, confidence
from fairtune.settings.claims import Claim
from fairtune.settings.metrics import METRICS, title_of

SUPPORTED, CONTRADICTED, NOT_SEPARABLE = "supported", "contradicted", "not separable"
IMPLAUSIBLE, NOT_RUN = "implausible", "not yet run"
ANSWERS = (SUPPORTED, CONTRADICTED, NOT_SEPARABLE, IMPLAUSIBLE, NOT_RUN)
POINTS, PERCENT, TIMES, VARIATION = "points", "%", "x", "x variation"
SEEDS, ROUNDS, COUNTED = "seeds", "rounds", "counted"


@dataclass(frozen=True)
class ClaimFigures:
    """What was found, in the unit of the claim.

    Args:
        value: the difference, arm minus the other; for speed how many times as fast, for parameters the frozen share in percent.
        low, high: the interval that decides: that of the whole family. None where it is counted, or there is none.
        alone: the interval of this comparison by itself.
        unit: points, % (of the other's figure, or of what `of` names), x (as fast), or x variation (of step times).
        n: of what `n_of` says: seeds that both arms have, rounds of timing, or parameters that were counted.
        against: the arm that it was compared with, which is the arm's control where it has one.
    """

    value: float
    low: float | None
    high: float | None
    alone: tuple[float | None, float | None]
    unit: str
    n: int
    n_of: str
    arm: str
    against: str | None
    metric: str | None
    level: float
    of: str = ""

    def __str__(self) -> str:
        if self.n_of == COUNTED:
            return f"{self.value:.2f} % of {self.n:,} parameters, counted"
        if self.against is None:
            ends = (
                f"{confidence(self.level)}: {self.low:.1f} to {self.high:.1f}; "
                if self.low is not None
                else "no interval; "
            )
            return f"{self.value:.1f} % {self.of} ({ends}{self._n})"
        interval = " to ".join(self._number(end) for end in (self.low, self.high))
        alone = " to ".join(self._number(end) for end in self.alone)
        family = "" if self.unit == VARIATION else " of the family"
        counted = f"{confidence(self.level)}{family}: {interval}" if self.low is not None else "no interval"
        if self.alone[0] is not None and (self.low, self.high) != self.alone:
            counted += f"; alone: {alone}"
        what = f" {title_of(self.metric)}" if self.metric else ""
        unit = {
            POINTS: " points of", PERCENT: " % of", TIMES: "x as fast a step", VARIATION: "x as much variation of step times",
        }[self.unit]  # fmt: skip
        return f"{self._number(self.value)}{unit}{what} against {self.against} ({counted}; {self._n})"

    @property
    def short(self) -> str:
        """The figure with its interval and n, for a table."""
        if self.n_of == COUNTED:
            return f"{self.value:.2f} % (counted)"
        unit = {POINTS: " points", PERCENT: " %", TIMES: "x", VARIATION: "x the variation"}[self.unit]
        if self.against is None:  # a share, not a difference
            ends = f"{self.low:.1f} to {self.high:.1f}; " if self.low is not None else ""
            return f"{self.value:.1f}{unit} ({ends}{self._n})"
        low, high, called = (self.low, self.high, "") if self.low is not None else (*self.alone, "alone: ")
        ends = f"{called}{self._number(low)} to {self._number(high)}; " if low is not None else ""
        return f"{self._number(self.value)}{unit} ({ends}{self._n})"

    @property
    def _n(self) -> str:
        return f"n = {self.n} {self.n_of.removesuffix('s') if self.n == 1 else self.n_of}"

    def _number(self, value: float | None) -> str:
        if value is None or math.isnan(value):
            return "–"
        if math.isinf(value):
            return "unbounded"
        if self.unit in (TIMES, VARIATION):
            return f"{value:.3f}"
        text = f"{value:+.2f}"
        return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", MINUS)


@dataclass(frozen=True)
class Answer:
    """What a study says to a claim.

    Args:
        reason: why this word, in one or two sentences.
        needed: what it would take, where the claim is open; empty where it is not, or nobody knows.
        notes: what to mind about the runs: unfinished, failed, changed plans.
        signature: what was compared under which plan, so that the same answer can be found again.
        command: that gives the figures.
    """

    claim: Claim
    word: str
    reason: str
    study: str
    figures: ClaimFigures | None = None
    needed: str = ""
    notes: tuple[str, ...] = ()
    signature: str = ""
    command: str = ""

    def __str__(self) -> str:
        found = f" Found: {self.figures}." if self.figures else ""
        needed = f" Outlook: {self.needed}." if self.needed else ""
        return f"{self.claim}: {self.word}. {self.reason}{found}{needed}"

    @property
    def sentence(self) -> str:
        """Its reason, the figures and what it would take, without the claim."""
        return str(self).removeprefix(f"{self.claim}: ")

    def as_json(self) -> dict[str, Any]:
        return {
            "claim": self.claim.model_dump(exclude_none=True),
            "text": str(self.claim),
            "answer": self.word,
            "reason": self.reason,
            "figures": None if self.figures is None else _plain(asdict(self.figures)),
            "needed": self.needed,
            "notes": list(self.notes),
            "study": self.study,
            "signature": self.signature,
            "command": self.command,
        }


def _plain(figures: dict[str, Any]) -> dict[str, Any]:
    """Figures as JSON has them: what is not finite is none."""

    def finite(value: Any) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {
        name: [finite(v) for v in value] if isinstance(value, tuple) else finite(value)
        for name, value in figures.items()
    }


def unit_of(metric: str) -> str:
    """The unit in which differences of a metric are claimed: a plain number has none but its share."""
    return POINTS if METRICS[metric].shown != "plain" else PERCENT


def worst_of(words: Sequence[str]) -> str:
    """The word for several statements that must all hold."""
    return next((word for word in (IMPLAUSIBLE, CONTRADICTED, NOT_RUN, NOT_SEPARABLE) if word in words), SUPPORTED)
