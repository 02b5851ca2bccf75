"""The figure of right answers by kind and by length: dots with intervals, a colour and a mark for each arm."""

from __future__ import annotations

from matplotlib.axes import Axes

from fairtune.core.printable import clip
from fairtune.report.figures.canvas import INK, drawing, new_figure, svg_text
from fairtune.report.figures.palette import arm_style
from fairtune.report.figures.rows import NARROW
from fairtune.report.sections.mistakes.content import MistakesSection, drawn_arms
from fairtune.report.sections.mistakes.examples import Groups
from fairtune.report.sections.start.figure import MARKS

ROW_INCHES, GROUP_GAP_INCHES = 0.1, 0.09
"""The height of an arm's row in a group, and the gap between groups."""
Panel = tuple[Groups, str]


def groups_svg(section: MistakesSection, width: float = 6.8) -> str | None:
    """Both kinds of groups below each other; None where there are none.

    Of many arms the reference and the first others are drawn; the tables have all.

    Args:
        width: in inches.
    """
    panels: list[Panel] = []
    if section.kinds is not None:
        panels.append((section.kinds, f"right answers by kind (%), {section.kinds.split} split"))
    if section.lengths is not None:
        panels.append((section.lengths, f"by length in tokens (%), {section.lengths.split} split"))
    if not panels:
        return None
    arms, narrow = drawn_arms(section), width < NARROW
    columns = 1 if narrow else len(arms)
    heights = [0.45 + len(groups.rows) * (ROW_INCHES * len(arms) + GROUP_GAP_INCHES) for groups, _ in panels]
    with drawing():
        figure = new_figure(width, sum(heights) + 0.4 + 0.19 * (len(arms) // columns - 1))
        found = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, (groups, title) in zip(found, panels, strict=True):
            _draw(axes, groups, arms, section.places, 14 if narrow else 28)
            axes.set_title(title, loc="left")
        handles = found[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=columns, frameon=False, labelcolor=INK)
        return svg_text(figure, f"groups-{width:.0f}", "Right answers by kind and by length, for some arms")


def _draw(axes: Axes, groups: Groups, arms: list[str], places: dict[str, int], letters: int) -> None:
    step = 0.62 / max(1, len(arms))
    for turn, arm in enumerate(arms):
        colour = arm_style(places[arm])["color"]
        found = [(place, group.shares[arm]) for place, group in enumerate(groups.rows) if arm in group.shares]
        heights = [place + (turn - (len(arms) - 1) / 2) * step for place, _ in found]
        for height, (_, share) in zip(heights, found, strict=True):
            axes.plot([100 * share.low, 100 * share.high], [height, height], color=colour, linewidth=1.4, alpha=0.8)
        dots = [100 * share.value for _, share in found]
        mark = MARKS[places[arm] % len(MARKS)]
        axes.plot(dots, heights, mark, color=colour, markersize=4.5, linewidth=0, label=arm, zorder=3)
    axes.set_yticks(
        range(len(groups.rows)), [f"{clip(group.name, letters)} (n = {group.n:,})" for group in groups.rows]
    )
    axes.set_ylim(len(groups.rows) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=INK, alpha=0.12, linewidth=0.6)
