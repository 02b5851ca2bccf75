"""A figure in two widths, of which the page shows the one that fits: letters keep their size on a phone."""

from __future__ import annotations

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
    wide, narrow = (kept_figure(drawer, *given, width) for width in (WIDE, NARROW))
    if wide is None or narrow is None:
        return None
    # of our own making; matplotlib escapes the names in it
    return Markup(f'<div class="on-wide">{wide}</div><div class="on-narrow">{narrow}</div>')
