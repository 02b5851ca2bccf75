"""Figures as files for papers: PDF and SVG, black on white, letters embedded, the same bytes every time."""

from __future__ import annotations

from io import BytesIO

import matplotlib
from matplotlib.figure import Figure

COLUMN, PAGE = 3.3, 6.8
"""Inches of a usual column, and of a page's text."""
KINDS = ("pdf", "svg")
METADATA = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
}


def figure_files(figure: Figure) -> dict[str, bytes]:
    """A figure by the ending of its file's name."""
    figure.set_facecolor("white")
    for axes in figure.axes:
        axes.set_facecolor("white")
    found = {}
    for kind in KINDS:
        found[kind] = _file(figure, kind)
        figure.set_layout_engine(
            "none"
        )  # everything has its place by now; finding it again would take as long as drawing
    return found


def _file(figure: Figure, kind: str) -> bytes:
    content = BytesIO()
    # letters as outlines in SVG, as TrueType in PDF: both show the same where the font is missing, and editors can read the latter
    with matplotlib.rc_context({"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "fairtune"}):
        figure.savefig(content, format=kind, metadata=METADATA[kind])
    return content.getvalue()
