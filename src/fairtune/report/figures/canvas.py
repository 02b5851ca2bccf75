"""What all figures share: a quiet style in the page's colours, SVG for inside a page, small PNGs; the same bytes every time."""

from __future__ import annotations

import html
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, StringIO
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

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
    text = re.sub(r"<[^<>]*>", lambda tag: _lighter(tag[0]), re.sub(r">\s+<", "><", text))
    text = re.sub(r'(<[^<>]*\bid=")', rf"\1{name}-", text)
    text = re.sub(r'(href="#|url\(#)', rf"\1{name}-", text)
    text = re.sub(rf'id="{name}-arm-(\d+)"', r'data-arm="\1"', text)
    opening, rest = text.split(">", 1)
    opening = re.sub(r'\s(width|height)="[^"]*"', "", opening)
    label = html.escape(title, quote=True)
    return f'{opening} role="img" aria-label="{label}">{rest}'.replace(INK, "currentColor").replace(PAGE, "var(--page)")


def _lighter(tag: str) -> str:
    """A tag of matplotlib's, at a hundredth of a point and on one line: pages hold many."""
    short = re.sub(r' transform="rotate\(-0 [^"]*"', "", re.sub(r"(\.\d\d)\d+", r"\1", tag))
    return re.sub(r"\s+", " ", short)


def mark_arm(artist: Artist, place: int) -> None:
    """Let the page know whose this is, so that it can be hidden with the rest of its arm."""
    artist.set_gid(f"arm-{place}")


@contextmanager
def drawing(ink: str = INK, page: str = PAGE) -> Iterator[None]:
    """Settings of all figures. Arm names are text, never formulas."""
    with matplotlib.rc_context(
        {
            "text.parse_math": False,
            "svg.fonttype": "none",
            "svg.hashsalt": "fairtune",
            "font.family": ["DejaVu Sans"],
            "font.size": 9,
            "axes.titlesize": 9.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.facecolor": page,
            "axes.edgecolor": ink,
            "axes.labelcolor": ink,
            "axes.titlecolor": ink,
            "text.color": ink,
            "xtick.color": ink,
            "ytick.color": ink,
        }
    ):
        yield


class ReportFigure(Figure):
    """A figure that notebooks show, with or without pyplot, and in which a name is never a formula."""

    def savefig(self, *args: Any, **options: Any) -> None:
        with matplotlib.rc_context({"text.parse_math": False}):
            super().savefig(*args, **options)

    def _repr_png_(self) -> bytes:
        return png(self)


def new_figure(width: float, height: float) -> ReportFigure:
    figure = ReportFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


SHADES = 128
"""Colours of a picture in a page: maps have few, and four times fewer bytes this way."""


def png(figure: Figure, dots: int = 160) -> bytes:
    """Args:
    dots: of an inch.
    """
    content = BytesIO()
    figure.savefig(content, format="png", dpi=dots, facecolor="white", metadata={"Software": None})
    return content.getvalue()


def reduced(picture: bytes) -> bytes:
    """A PNG in few colours, for a page that holds many."""
    content = BytesIO()
    with Image.open(BytesIO(picture)) as image:
        image.convert("RGB").quantize(SHADES, dither=Image.Dither.NONE).save(content, format="PNG", optimize=True)
    return content.getvalue()


def address(content: bytes, format: str = "png") -> str:
    """A picture as an address that holds it whole."""
    return f"data:image/{format};base64,{b64encode(content).decode('ascii')}"
