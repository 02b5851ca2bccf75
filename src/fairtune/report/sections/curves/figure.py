"""The figure of validation score and training loss over steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fairtune.report.content import ArmRow, Header
from fairtune.report.figures.axes import log_if_wide
from fairtune.report.figures.canvas import INK, drawing, new_figure, svg_text
from fairtune.report.figures.palette import arm_style
from fairtune.report.sections.curves.content import Curve, Points
from fairtune.settings.metrics import METRICS
from fairtune.settings.scales import scale_of

LARGEST = 30.0
"""A target loss beyond any that a plot could show."""


def mean_curve(curves: list[tuple[tuple[int, float], ...]]) -> tuple[tuple[int, float], ...]:
    """The mean at every step that all the curves have; a run that stopped early ends the mean, it does not bend it."""
    if not curves:
        return ()
    by_step = [dict(curve) for curve in curves]
    shared = sorted(set.intersection(*(set(curve) for curve in by_step)))
    return tuple((step, sum(curve[step] for curve in by_step) / len(by_step)) for step in shared)


def curves_svg(header: Header, rows: Sequence[ArmRow], curves: Sequence[Curve]) -> str:
    """Validation score and training loss over steps, one thin line per seed, a thick one for the arm's mean."""
    scale = scale_of(header.metric)
    with drawing():
        figure = new_figure(6.8, 3.2 + 0.19 * max(0, math.ceil(len(rows) / 3) - 2))
        left, right = figure.subplots(1, 2)
        for place, row in enumerate(rows):
            own = [curve for curve in curves if curve.arm == row.arm]
            _draw_curves(left, place, row.arm, own, lambda curve: curve.score, scale.factor)
            _draw_curves(right, place, row.arm, own, lambda curve: curve.loss, 1)
        left.set_title(f"validation {scale.axis}", loc="left")
        right.set_title("training loss" if header.text is None else "training loss (nats per token)", loc="left")
        for axes in (left, right):
            axes.set_xlabel("optimizer step")
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
        if scale.plain:
            level = _draw_target(left, header)
            scores = [score for curve in curves for _, score in curve.score]
            log_if_wide(left, "y", scores if level is None else [level, *scores])
        handles, labels = left.get_legend_handles_labels()
        if handles:
            columns = min(3, len(handles))
            figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, labelcolor=INK)
        return svg_text(figure, "curves", "Learning curves by arm")


def _draw_target(axes: Axes, header: Header) -> float | None:
    """The target loss as a thin line, where the metric follows from the loss alone; returns where it is drawn."""
    target = header.text.target_loss if header.text is not None else None
    metric = METRICS.get(header.metric)
    if target is None or target > LARGEST or metric is None or metric.from_loss is None or not axes.lines:
        return None
    level = metric.from_loss(target)
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
