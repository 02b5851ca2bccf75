"""A matplotlib figure as SVG to stand inside an HTML page, in the page's own text colour, the same bytes every time."""

from __future__ import annotations

import html
import re
from io import StringIO

from matplotlib.figure import Figure

INK = "#010203"
"""A colour that nothing else has: it becomes the colour of the page's text, so that figures follow light and dark."""


PAGE = "#fefdfc"
"""Likewise, the page's background."""


def svg_text(figure: Figure, name: str, title: str) -> str:
    """Args:
    name: set before every id, since ids must differ between the figures of one page.
    title: what a screen reader says.
    """
    buffer = StringIO()
    figure.savefig(
        buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    text = buffer.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r'(<[^<>]*\bid=")', rf"\1{name}-", text)
    text = re.sub(r'(href="#|url\(#)', rf"\1{name}-", text)
    opening, rest = text.split(">", 1)
    opening = re.sub(r'\s(width|height)="[^"]*"', "", opening)
    label = html.escape(title, quote=True)
    return f'{opening} role="img" aria-label="{label}">{rest}'.replace(INK, "currentColor").replace(PAGE, "var(--page)")
