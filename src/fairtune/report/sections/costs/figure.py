"""Figures of what runs took: total times as bars, and the time of a step along training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fairtune.report.figures.axes import log_if_wide
from fairtune.report.figures.canvas import INK, drawing, mark_arm, new_figure, svg_text
from fairtune.report.figures.palette import arm_style
from fairtune.report.figures.rows import NARROW, entitle, figure_height, label_arms, legend_columns
from fairtune.report.sections.curves.figure import draw_legend

Own = Mapping[str, Mapping[str, Any]]
UNITS = (("hours", 3600.0, 2 * 3600.0), ("minutes", 60.0, 2 * 60.0), ("seconds", 1.0, 0.0))
"""Of the time axis, each with its seconds, and from how many seconds on it is used."""


def bars_svg(arms: Sequence[str], own: Own, width: float) -> str | None:
    with drawing():
        figure = draw_bars(arms, own, width)
        return None if figure is None else svg_text(figure, f"bars-{width:.0f}", "Total time of a run by arm")


def steps_svg(arms: Sequence[str], own: Own, width: float) -> str | None:
    with drawing():
        figure = draw_steps(arms, own, width, legend=False)
        return (
            None if figure is None else svg_text(figure, f"steps-{width:.0f}", "Time of a step along training by arm")
        )


def draw_bars(arms: Sequence[str], own: Own, width: float = 6.8) -> Figure | None:
    """The mean total time of each arm's runs, with the range of the runs; None where no run left its time.

    Args:
        arms: all of the study, in its order, which decides their colours.
        width: in inches.
    """
    shown = [(place, arm) for place, arm in enumerate(arms) if arm in own]
    if not shown:
        return None
    most, narrow = max(own[arm]["total_seconds_range"][1] for _, arm in shown), width < NARROW
    unit, seconds, _ = next(one for one in UNITS if most >= one[2])
    with drawing():
        figure = new_figure(width, figure_height(width, len(shown)))
        axes = figure.subplots()
        for row, (place, arm) in enumerate(shown):
            total, ends = (
                own[arm]["total_seconds"] / seconds,
                [one / seconds for one in own[arm]["total_seconds_range"]],
            )
            (bar,) = axes.barh(
                [row], [total], height=0.22 if narrow else 0.5, color=arm_style(place)["color"], alpha=0.75
            )
            (line,) = axes.plot(ends, [row, row], color=INK, linewidth=1.2, marker="|", markersize=5)
            mark_arm(bar, place)
            mark_arm(line, place)
        label_arms(axes, [(arm, own[arm]["n"]) for _, arm in shown], narrow)
        axes.set_xlim(left=0)
        entitle(axes, f"total time of a run ({unit})", narrow)
    return figure


def draw_steps(arms: Sequence[str], own: Own, width: float = 6.8, legend: bool = True) -> Figure | None:
    """The median time of a step over stretches of training; None where no arm has two stretches.

    Args:
        arms: all of the study, in its order, which decides their colours.
        width: in inches.
    """
    curves = {arm: own[arm]["step_curve"] for arm in arms if arm in own and len(own[arm]["step_curve"]) > 1}
    if not curves:
        return None
    labels = {arm: f"{arm} (n = {own[arm]['n']})" for arm in curves}
    across = legend_columns(list(labels.values()), width)
    with drawing():
        figure = new_figure(width, 2.6 + (0.19 * -(-len(curves) // across) if legend else 0))
        axes = figure.subplots()
        for place, arm in enumerate(arms):
            if arm in curves:
                points = [(step, 1000 * seconds) for step, seconds in curves[arm]]
                (line,) = axes.plot(*zip(*points, strict=True), linewidth=1.2, label=labels[arm], **arm_style(place))
                mark_arm(line, place)
        if not log_if_wide(axes, "y", [1000 * seconds for curve in curves.values() for _, seconds in curve]):
            axes.set_ylim(bottom=0)
        axes.set_title("milliseconds per step", loc="left")
        axes.set_xlabel("optimizer step")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
        if legend:
            draw_legend(figure, across)
    return figure
