"""The figure of learning curves: validation and training loss over steps."""

from __future__ import annotations

import math
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fairtune.report.axes import log_if_wide
from fairtune.report.canvas import drawing, new_figure
from fairtune.report.content import Curve, Header, ReportContent
from fairtune.report.curves import mean_curve
from fairtune.report.palette import arm_style
from fairtune.report.scales import scale_of
from fairtune.report.svg import INK, svg_text

Points = tuple[tuple[int, float], ...]
LEVELS: dict[str, Callable[[float], float]] = {"loss": float, "perplexity": math.exp}
"""Metrics that follow from the loss alone."""
LARGEST = 30.0
"""A target loss beyond any that a plot could show."""


def curves_svg(content: ReportContent) -> str:
    """Validation score and training loss over steps, a thin line a seed, a thick one for the arm's mean."""
    header, scale = content.header, scale_of(content.header.metric)
    with drawing():
        figure = new_figure(6.8, 3.2 + 0.19 * max(0, math.ceil(len(content.rows) / 3) - 2))
        left, right = figure.subplots(1, 2)
        for place, row in enumerate(content.rows):
            curves = [curve for curve in content.curves if curve.arm == row.arm]
            _draw_curves(left, place, row.arm, curves, lambda curve: curve.score, scale.factor)
            _draw_curves(right, place, row.arm, curves, lambda curve: curve.loss, 1)
        left.set_title(f"validation {scale.axis}", loc="left")
        right.set_title("training loss" if header.text is None else "training loss (nats a token)", loc="left")
        for axes in (left, right):
            axes.set_xlabel("optimizer step")
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
        if scale.plain:
            level = _draw_target(left, header)
            scores = [score for curve in content.curves for _, score in curve.score]
            log_if_wide(left, "y", scores if level is None else [level, *scores])
        handles, labels = left.get_legend_handles_labels()
        if handles:
            columns = min(3, len(handles))
            figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, labelcolor=INK)
        return svg_text(figure, "curves", "Learning curves by arm")


def _draw_target(axes: Axes, header: Header) -> float | None:
    """The target loss as a thin line, where the metric follows from the loss alone; returns where it is drawn."""
    target = header.text.target_loss if header.text is not None else None
    if target is None or target > LARGEST or header.metric not in LEVELS or not axes.lines:
        return None
    level = LEVELS[header.metric](target)
    axes.axhline(level, color=INK, linewidth=0.8, linestyle=(0, (6, 3)), alpha=0.7, zorder=1)
    where = (0.99, level)
    axes.annotate(
        f"target loss {target:g}", where, xycoords=axes.get_yaxis_transform(), xytext=(0, 2),
        textcoords="offset points", ha="right", va="bottom", fontsize=7.5,
    )  # fmt: skip
    return level


def _draw_curves(
    axes: Axes, place: int, arm: str, curves: list[Curve], points: Callable[[Curve], Points], factor: float
) -> None:
    style = arm_style(place)
    for curve in curves:
        axes.plot(
            [x for x, _ in points(curve)], [factor * y for _, y in points(curve)], linewidth=0.7, alpha=0.4, **style
        )
    finished = [points(curve) for curve in curves if curve.status == "finished"]
    mean = mean_curve(finished)
    if mean:
        label = f"{arm} (n = {len(finished)})"
        marker = "o" if len(mean) < 12 else ""
        axes.plot(
            [x for x, _ in mean],
            [factor * y for _, y in mean],
            linewidth=1.8,
            marker=marker,
            markersize=3.5,
            label=label,
            **style,
        )
