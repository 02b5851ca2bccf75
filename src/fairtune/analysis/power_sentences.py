"""Power in words: what `plan` says that a study can show, and what an open verdict says that it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fairtune.analysis.power import (
    EXAMPLES,
    HARDLY,
    MARGIN,
    MOST_ADVISED,
    POWER,
    SEEDS,
    LevelAt,
    Noise,
    Outlook,
    detectable,
    level_after,
    seeds_to_confirm,
)
from fairtune.core.numbers import plural

Show = Callable[[float], str]


def show_points(value: float) -> str:
    """A share of one in points, one place: 0.021 is 2.1."""
    return f"{100 * value:.1f}"


def describe_power(
    noise: Noise,
    seeds: int,
    examples: int,
    comparisons: int,
    risk: float,
    margin: float | None = None,
    margin_text: str = "",
    unit: str = "points",
    show: Show = show_points,
    item: str = "test example",
) -> str:
    """What a planned study can show, in one sentence; a single look at the end.

    "Nothing will show" is said of differences that are seen with a chance below 20 %.

    Args:
        margin: in the metric's unit, like the noise.
        margin_text: the margin as the study has it, such as "1.5 %".
        item: what the test split holds.
    """
    given = f"{plural(seeds, 'seed')}, {plural(examples, item)}, {plural(comparisons, 'comparison')}"
    if seeds < 2:
        return f"{given}: no verdict; two seeds or more are needed"
    level = risk / max(1, comparisons)
    seen, hidden = detectable(noise, seeds, level), detectable(noise, seeds, level, HARDLY)
    parts = [f"{POWER:.0%} chance to see {show(seen)} {unit}".replace("%", " %")]
    parts.append(f"below about {show(hidden)} nothing will show")
    if margin is not None:
        level_at = level_after((), max(1, comparisons), risk)
        parts.append(_describe_margin(noise, seeds, margin, margin_text or f"{show(margin)} {unit}", level_at, item))
    return f"{given}: {'; '.join(parts)}"


def _describe_margin(noise: Noise, seeds: int, margin: float, text: str, level_at: LevelAt, item: str) -> str:
    needed = seeds_to_confirm(noise, margin, level_at)
    if needed is None:
        alone = seeds_to_confirm(replace(noise, examples=0.0), margin, level_at)
        limit = f"it takes more {item}s" if alone is not None else f"it takes more than {MOST_ADVISED} seeds"
        return f"the margin of {text} cannot be confirmed: {limit}"
    if needed <= seeds:
        return f"the margin of {text} can be confirmed"
    return f"the margin of {text} cannot be confirmed with fewer than {needed} seeds"


def describe_outlook(outlook: Outlook, n: int, item: str = "test example") -> str:
    """What it would take to settle a comparison of n seeds, as a note beside its verdict."""
    if outlook.kind == SEEDS and outlook.low is not None and outlook.high is not None:
        low, high = outlook.low - n, outlook.high - n
        return f"{plural(high, 'more seed') if low == high else f'{low} to {high} more seeds'} could settle it"
    if outlook.kind == EXAMPLES:
        many = "" if outlook.examples is None else f"about {outlook.examples:,} in all, with {outlook.high} seeds"
        return f"more seeds alone will not settle it; it takes more {item}s" + (f" ({many})" if many else "")
    if outlook.kind == MARGIN:
        return "the difference is near zero; state a margin, and it can be shown to be smaller than that"
    return f"it would take more than {MOST_ADVISED} seeds to settle it"
