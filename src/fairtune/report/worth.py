"""What each change is worth: arms ranked by what they gain, and a short answer that follows from verdict and time.

The rule, in this order:

- *no verdict*, *not separable*: not shown, and what is missing.
- *worse*, *inferior*: no; time that it saves is told.
- *better*: yes, with the change in time.
- *not inferior*: yes if it is clearly cheaper, else no.

A change in time is clear if every seed shows it and its median is 2 % or more; a single seed shows none, and neither do runs
that began on a busy machine. A saving beyond the arm's bound is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairtune.analysis.verdicts import BETTER, NONE, NOT_INFERIOR, NOT_SEPARABLE
from fairtune.report.content import Versus, Worth
from fairtune.report.scales import scale_of

CLEAR = 0.02
"""A smaller change of a step's time is none."""
FEWEST = 2
"""Arms besides the reference, from which on a ranking says something."""
BUSY = "at a time that a busy machine cannot tell"


def rank(found: Iterable[Versus], metric: str) -> tuple[Worth, ...]:
    """Arms against the reference, the largest gain first, those without a figure last."""
    ranked = [worth_of(versus, metric) for versus in found]
    if len(ranked) < FEWEST:
        return ()
    return tuple(sorted(ranked, key=lambda one: (one.gain is None, -(one.gain or 0.0))))


def worth_of(versus: Versus, metric: str, left_out: str | None = None) -> Worth:
    """One comparison with its answer."""
    gain, low, high = versus.difference, versus.low, versus.high
    if scale_of(metric).lower_is_better:
        gain, low, high = _minus(gain), _minus(versus.high), _minus(versus.low)
    return Worth(versus, left_out, gain, low, high, _answer(versus))


def _answer(versus: Versus) -> str:
    change = time_change(versus)
    if versus.word in (NONE, NOT_SEPARABLE):
        return f"not shown: {versus.note}" if versus.note else "not shown"
    if versus.word == BETTER:
        return "yes, " + (BUSY if versus.busy else _at(change))
    if versus.word == NOT_INFERIOR:
        if versus.busy:
            return "not shown: no worse, but whether it is cheaper a busy machine cannot tell; time it again"
        if change is None or change >= 0:
            return "no: neither better nor clearly cheaper"
        if versus.beats_bound:
            return "not shown: it seems cheaper than matrix products allow; time it again"
        return f"yes, saves {_percent(change)} of a step's time"
    return "no" if change is None or change >= 0 else f"no, though it saves {_percent(change)} of a step's time"


def time_change(versus: Versus) -> float | None:
    """The change of a step's time as a share: 0 where it is not clear, None where two seeds on a quiet machine do not show it."""
    seen = versus.slowdown
    if seen is None or seen.n < 2 or versus.busy:
        return None
    clear = abs(seen.median - 1) >= CLEAR and (seen.low > 1 or seen.high < 1)
    return seen.median - 1 if clear else 0.0


def _at(change: float | None) -> str:
    if change is None:
        return "at a time that too few runs show"
    if change == 0:
        return "at no clear change in time"
    return f"at +{_percent(change)} time a step" if change > 0 else f"and it saves {_percent(change)} of a step's time"


def _percent(change: float) -> str:
    return f"{abs(100 * change):.0f} %"


def _minus(value: float | None) -> float | None:
    return None if value is None else -value
