"""The bar beside a picture that says what its shades mean."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure


def shade_bar(
    figure: Figure, axes: Axes, shades: ScalarMappable, label: str, ticks: Sequence[float] | None = None,
    inches: float = 5.0,
) -> Colorbar:  # fmt: skip
    """Args:
    inches: height of the bar at most.
    """
    part = min(0.9, inches / figure.get_figheight())
    bar = figure.colorbar(shades, ax=axes, shrink=part, aspect=28, pad=0.02, ticks=ticks)
    bar.outline.set_visible(False)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7.5)
    return bar
