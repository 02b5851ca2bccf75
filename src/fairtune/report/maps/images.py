"""Figures as PNG: small, the same bytes every time, and as an address that stands inside a page."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO

from matplotlib.figure import Figure
from PIL import Image

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


def address(content: bytes, kind: str = "png") -> str:
    """A picture as an address that holds it whole."""
    return f"data:image/{kind};base64,{b64encode(content).decode('ascii')}"
