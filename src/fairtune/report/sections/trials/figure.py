"""The figure of the validation score to expect of the best of so many trials."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.ticker import MaxNLocator

from fairtune.analysis.scales import scale_of
from fairtune.analysis.tuned_arms import BestOf
from fairtune.report.figures.canvas import INK, drawing, new_figure, svg_text
from fairtune.report.figures.palette import arm_style
from fairtune.report.figures.rows import NARROW

FEW = 4
"""Arms up to which intervals are shaded; of more they would hide each other, and stand in the table below."""


def best_of_svg(
    metric: str, arms: Sequence[str], curves: Sequence[tuple[str, Sequence[BestOf]]], width: float = 6.8
) -> str:
    """One line per arm over the number of trials.

    Args:
        arms: of the study, in its order, which gives each its colour.
        width: in inches.
    """
    scale, columns = scale_of(metric), 1 if width < NARROW else 3
    with drawing():
        figure = new_figure(width, 2.7 + 0.19 * math.ceil(len(curves) / columns))
        axes = figure.subplots()
        for arm, curve in curves:
            style = arm_style(arms.index(arm) if arm in arms else len(arms))
            k = [point.trials for point in curve]
            axes.plot(
                k,
                [scale.factor * p.expected for p in curve],
                marker="o",
                markersize=3,
                linewidth=1.6,
                label=arm,
                **style,
            )
            if len(curves) <= FEW:
                low, high = [scale.factor * p.low for p in curve], [scale.factor * p.high for p in curve]
                axes.fill_between(k, low, high, color=style["color"], alpha=0.12, linewidth=0)
        axes.set_title(f"expected best validation {scale.axis}", loc="left")
        axes.set_xlabel("trials of each arm")
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(columns, len(handles)), frameon=False, labelcolor=INK
        )
        return svg_text(figure, f"tuning-{width:.0f}", "Expected validation score by number of trials")
