"""What each change is worth: arms ranked by what they gain, and a short answer that follows from verdict and time.

The rule, in this order:

- *no verdict*, *not separable*, *not shown*: not shown, and what is missing.
- *worse*, *inferior*: no; time that it saves is stated.
- *better*: yes, with the change in time.
- *not inferior*, *equivalent*: yes if it is clearly cheaper, else no.

Times come from the timing experiment alone (`fairtune time`, or `time: true` in the study): a change is clear if its interval,
made for all arms together, does not hold 1, and if it is 1 % or more. Nothing is concluded where the experiment's A/A failed, and a
saving beyond the arm's bound is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairtune.analysis.arm_pairs import SETTINGS
from fairtune.analysis.scales import relative, scale_of
from fairtune.analysis.verdicts import BETTER, EQUIVALENT, NONE, NOT_INFERIOR, NOT_SEPARABLE, NOT_SHOWN
from fairtune.core.numbers import DASH, confidence, low_to_high, ratio
from fairtune.report.content import Header, Versus
from fairtune.report.evidence import OTHER_WORK, UNTIMED

FEWEST = 2
"""Arms besides the reference, from which on a ranking says something."""
TO_TIME = "`fairtune time` measures it"


def rank(found: Iterable[Versus], metric: str) -> tuple[Worth, ...]:
    """Primary comparisons, the largest gain first, those without a verdict to come or without a figure last."""
    ranked = [worth_of(versus, metric) for versus in found]
    if len(ranked) < FEWEST:
        return ()
    return tuple(sorted(ranked, key=lambda one: (one.gain is None, one.versus.word == NOT_SHOWN, -(one.gain or 0.0))))


def worth_of(versus: Versus, metric: str, left_out: str | None = None) -> Worth:
    """One comparison with its answer."""
    gain, low, high = versus.difference, versus.low, versus.high
    if scale_of(metric).lower_is_better:
        gain, low, high = _minus(gain), _minus(versus.high), _minus(versus.low)
    return Worth(versus, left_out, gain, low, high, _answer(versus))


def _answer(versus: Versus) -> str:
    change = versus.time_change
    if versus.word in (NONE, NOT_SEPARABLE, NOT_SHOWN):
        note = versus.note.replace(", not shown; ", "; ")
        return f"not shown: {note}" if note else "not shown"
    if versus.word == BETTER:
        return f"yes, {_at(change)}" if change is not None else f"yes, but {versus.untold or UNTIMED}"
    if versus.word in (NOT_INFERIOR, EQUIVALENT):
        if change is None:
            advice = TO_TIME if versus.timed is None else "time it longer"
            advice = "" if versus.untold == OTHER_WORK else f"; {advice}"
            return f"not shown: no worse, but {versus.untold or UNTIMED}{advice}"
        if change >= 0:
            return "no: neither better nor clearly cheaper"
        return f"yes, saves {_percent(change)} of a step's time"
    return "no" if change is None or change >= 0 else f"no, though it saves {_percent(change)} of a step's time"


def _at(change: float) -> str:
    if change == 0:
        return "at no clear change in time"
    return (
        f"at +{_percent(change)} time per step" if change > 0 else f"and it saves {_percent(change)} of a step's time"
    )


def _percent(change: float) -> str:
    return f"{abs(100 * change):.0f} %" if abs(change) >= 0.1 else f"{abs(100 * change):.1f} %"


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


@dataclass(frozen=True)
class Worth:
    """One line of the ranking: what a change gains, and whether that is worth its time.

    Args:
        left_out: the method that the other arm lacks; None in the ranking.
        gain, low, high: the difference turned so that more is better.
        answer: by the rule of `worth.py`.
    """

    versus: Versus
    left_out: str | None
    gain: float | None
    low: float | None
    high: float | None
    answer: str


TITLE, LEFT_OUT, RAW = "What each change is worth", "Left out", "Plain differences to the reference"


def raw_note(header: Header) -> str:
    """What the table of plain differences is good for."""
    return (
        f"For description only, without p or verdict: these arms are compared with their controls above. The difference to "
        f"{header.reference} also holds whatever their settings change."
    )


def gain_heading(header: Header) -> str:
    return f"gain ({'%' if scale_of(header.metric).plain else 'points'})"


def gain_cells(header: Header, one: Worth) -> tuple[str, str]:
    """Gain and interval; of a plain number, as a share of the other arm's."""
    if one.low is None:
        return DASH, DASH
    scale, base = scale_of(header.metric), one.versus.base
    if not scale.plain:
        return scale.signed(one.gain), low_to_high(one.low, one.high, scale.signed)
    return relative(one.gain, base), low_to_high(one.low, one.high, lambda end: relative(end, base))


def settings_text(one: Worth) -> str:
    """Settings, besides methods, in which the two arms differ; empty if none."""
    found = [f"{c.setting} {c.value}, not {c.reference_value}" for c in one.versus.confounds]
    if not found:
        return ""
    return f"{'differs in' if one.versus.about != SETTINGS else 'compares settings:'} {'; '.join(found)}"


def worth_notes(header: Header, ranking: Sequence[Worth]) -> list[str]:
    """How to read the ranking."""
    level = confidence(header.confidence)
    notes = [
        f"A gain is the difference to the arm that an arm is compared with, more being better, with its {level} interval. The "
        f"cost is the time of a step from the timing experiment, with its {level} interval, and, where an arm makes more "
        "passes "
        "through the model, what counting them predicts. Memory and size stand under “Time and size”.",
        "Worth it? Yes: better, or not inferior and clearly cheaper (by 1 % or more, beyond what chance does). No: worse, "
        "inferior, or "
        "neither better nor clearly cheaper. Not shown: these runs cannot tell. The order is that of the measured gains, "
        "each over "
        "its own control; arms whose intervals overlap are not ranked by it.",
    ]
    if ranking and all(one.versus.timed is None for one in ranking):
        notes.append(
            "The arms were not timed against each other, so no answer builds on time: `fairtune time` with the study's "
            "file does it."
        )
    return notes if ranking else []


def left_out_text(_: Header) -> str:
    """What the second table compares."""
    return (
        "Each arm of several methods against the arm that lacks one of them: what that method adds to the rest. p values "
        "behind "
        "these verdicts are corrected (Holm) over the comparisons of this table, a secondary family beside the primary "
        "comparisons."
    )


def expected_text(versus: Versus | None) -> str:
    """The expected ratio, to stand after the measured one; nothing where passes predict no change."""
    if versus is None or versus.expected is None or versus.expected == 1:
        return ""
    return f"{ratio(versus.expected)} expected"


def cost_parts(versus: Versus) -> list[str]:
    """The measured ratio, its interval, and the expected one, as far as they are known."""
    timed = versus.timed
    found = [] if timed is None else [f"×{timed.found.ratio:.3f}", f"({timed.found.low:.3f} to {timed.found.high:.3f})"]
    if expected_text(versus):
        found.append(f"×{versus.expected:.2f} expected")
    return found or [DASH]


def cost_text(versus: Versus) -> str:
    """All in a line: ×1.930 (1.880 to 1.970), ×2.00 expected."""
    return " ".join(cost_parts(versus)).replace(" ×", ", ×")
