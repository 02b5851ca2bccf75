"""The figure of scores beside costs."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fairtune.analysis.scales import scale_of
from fairtune.report.content import Header
from fairtune.report.figures.axes import log_if_wide
from fairtune.report.figures.canvas import INK, PAGE, drawing, mark_arm, new_figure, svg_text
from fairtune.report.figures.palette import GREY, arm_style
from fairtune.report.figures.rows import NARROW, cut_middle
from fairtune.report.sections.pareto.content import CostPanel

PANEL_INCHES = 2.9
NAME_POINTS, LINE_POINTS = 80.0, 8.0
"""How wide a name is, about, and how high."""
RIGHT = 0.6
"""Beyond this share of the width a name stands to the left of its point."""
LONGEST_NAME = 28
"""Letters of a name that stays within half of a panel."""
NAMED = 12
"""Names of more points than this would lie on each other; those on the front are named still."""


def pareto_svg(header: Header, panels: Sequence[CostPanel], width: float) -> str:
    with drawing():
        figure = draw_pareto(header, panels, width)
        return svg_text(figure, f"pareto-{width:.0f}", "Quality of each arm against what it costs")


def draw_pareto(header: Header, panels: Sequence[CostPanel], width: float = 6.8) -> Figure:
    """Each arm's score, with its interval, beside the cost; a line joins those that no other beats in both.

    Args:
        width: in inches.
    """
    scale = scale_of(header.metric)
    columns = 1 if width < NARROW else len(panels)
    with drawing():
        figure = new_figure(width, 0.2 + PANEL_INCHES * (len(panels) if columns == 1 else 1))
        grid = figure.subplots(len(panels) // columns, columns, squeeze=False, sharey=columns > 1)
        for axes, panel in zip(grid.flat, panels, strict=True):
            _draw_panel(axes, panel, scale.factor)
            axes.set_title(scale.axis if axes is grid.flat[0] or columns == 1 else "", loc="left")
            axes.set_xlabel(panel.title)
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.grid(color=INK, alpha=0.12, linewidth=0.6)
            log_if_wide(axes, "x", [point.cost for point in panel.points])
        figure.draw_without_rendering()
        for axes, panel in zip(grid.flat, panels, strict=True):
            _name_points(axes, panel, scale.factor)
    return figure


def _draw_panel(axes: Axes, panel: CostPanel, by: float) -> None:
    front = sorted((point for point in panel.points if point.front), key=lambda point: point.cost)
    axes.plot([p.cost for p in front], [by * p.score for p in front], color=GREY, linewidth=1, alpha=0.6, zorder=1)
    for point in panel.points:
        style = arm_style(point.place)["color"]
        if point.low is not None and point.high is not None:
            (bar,) = axes.plot(
                [point.cost] * 2, [by * point.low, by * point.high], color=style, linewidth=1.4, alpha=0.7
            )
            mark_arm(bar, point.place)
        (spread,) = axes.plot([point.cost_low, point.cost_high], [by * point.score] * 2, color=style, linewidth=1.4)
        mark_arm(spread, point.place)
        fill = style if point.front else PAGE
        (dot,) = axes.plot([point.cost], [by * point.score], "o", color=style, markerfacecolor=fill, markersize=6)
        mark_arm(dot, point.place)
    axes.margins(x=0.15, y=0.12)


def _name_points(axes: Axes, panel: CostPanel, by: float) -> None:
    """A name beside each point, none on another; called when the axes have their size."""
    named = [point for point in panel.points if point.front or len(panel.points) <= NAMED]
    where = axes.transData.transform([(point.cost, by * point.score) for point in named]) * 72 / axes.figure.dpi
    top = axes.bbox.y1 * 72 / axes.figure.dpi - LINE_POINTS
    heights = name_heights([(float(x), float(y)) for x, y in where], top)
    for point, (x, y), height in zip(named, where, heights, strict=True):
        right = axes.transAxes.inverted().transform((x * axes.figure.dpi / 72, 0))[0] > RIGHT
        name = axes.annotate(
            cut_middle(point.arm, LONGEST_NAME),
            (point.cost, by * point.score),
            xytext=(-6 if right else 6, height - y + 2.5),  # above the line that joins the best
            textcoords="offset points",
            ha="right" if right else "left",
            fontsize=7,
        )
        name.set_in_layout(False)
        mark_arm(name, point.place)


def name_heights(places: Sequence[tuple[float, float]], top: float) -> list[float]:
    """Where names stand, in points: beside theirs, or moved up from the one below, but not beyond the top."""
    heights = [y for _, y in places]
    upwards = sorted(range(len(places)), key=lambda one: heights[one])
    for at, one in enumerate(upwards):
        below = [heights[other] for other in upwards[:at] if abs(places[other][0] - places[one][0]) < NAME_POINTS]
        heights[one] = max([heights[one], *(height + LINE_POINTS for height in below)])
    for at, one in enumerate(reversed(upwards)):
        above = [
            heights[other]
            for other in upwards[len(upwards) - at :]
            if abs(places[other][0] - places[one][0]) < NAME_POINTS
        ]
        heights[one] = min([heights[one], top, *(height - LINE_POINTS for height in above)])
    return heights
