"""A figure in two widths, of which the page shows the one that fits: letters keep their size on a phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from fairtune.report.figures.kept import kept_figure

WIDE, NARROW = 6.8, 3.75
"""In inches: a page of text, and a phone held upright."""


def both_widths(drawer: str, *given: Any) -> Markup | None:
    """What a function draws in both; it takes the width, in inches, after what it draws.

    Args:
        drawer: as `kept_figure` takes it; draws SVG, or nothing.
    """
    drawn = {width: kept_figure(drawer, *given, width) for width in (WIDE, NARROW)}
    return None if None in drawn.values() else fitting(drawn.__getitem__)


def fitting(draw: Callable[[float], str]) -> Markup:
    """SVG of our own making, in which matplotlib has escaped the names, in both widths."""
    return Markup(f'<div class="on-wide">{draw(WIDE)}</div><div class="on-narrow">{draw(NARROW)}</div>')
