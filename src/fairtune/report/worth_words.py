"""The ranking in words: what its columns say, and how to read it."""

from __future__ import annotations

from fairtune.core.numbers import DASH, confidence, low_to_high
from fairtune.report.content import Header, ReportContent, Worth
from fairtune.report.scales import relative, scale_of

TITLE, LEFT_OUT = "What each change is worth", "Left out"


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
    return f"differs in {'; '.join(found)}" if found else ""


def worth_notes(content: ReportContent) -> list[str]:
    """How to read the ranking."""
    header = content.header
    level = confidence(header.confidence)
    notes = [
        f"A gain is the difference to {header.reference}, more being better, with its {level} interval. The cost is the time of a "
        "step, the median over the seeds that both arms have (lowest to highest), and, where an arm makes more passes "
        "through the model, what counting them predicts. Memory and size stand under “Time and size”.",
        "Worth it? Yes: better, or not inferior and clearly cheaper (in every seed, by 2 % or more). No: worse, inferior, or "
        "neither better nor clearly cheaper. Not shown: these runs cannot tell. The order is that of the measured gains; "
        "arms whose intervals overlap are not ranked by it.",
    ]
    if any(one.versus.busy for one in content.ranking):
        notes.append("Do not trust the times in this table: runs began on a busy machine, so no answer builds on them.")
    return notes if content.ranking else []


def left_out_text(header: Header) -> str:
    """What the second table compares."""
    return (
        "Each arm of several methods against the arm that lacks one of them: what that method adds to the rest. p values behind "
        f"these verdicts are corrected (Holm) over the comparisons of this table, apart from those with {header.reference}."
    )
