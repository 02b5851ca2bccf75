"""The performance profiles of a suite's arms: which share of runs gains more than so much, over all tasks."""

from __future__ import annotations

from matplotlib.axes import Axes

from fairtune.analysis.arms_over_tasks import ArmOverTasks
from fairtune.analysis.scales import scale_of
from fairtune.analysis.suite_verdict import MetricOverTasks
from fairtune.report.figures.canvas import drawing, new_figure, svg_text
from fairtune.report.figures.palette import GREY, arm_style

WIDTH, HEIGHT, MOST_ARMS = 7.2, 3.6, 12


def draw_profiles(one: MetricOverTasks, name: str) -> str | None:
    """The figure as SVG; None where there are fewer than five tasks.

    Args:
        name: that its ids begin with.
    """
    lines = [line for line in one.arms if line.profile is not None][:MOST_ARMS]
    if not lines:
        return None
    with drawing():
        figure = new_figure(WIDTH, HEIGHT)
        axes = figure.subplots()
        axes.axvline(0, color=GREY, linewidth=1, linestyle="--")
        for place, line in enumerate(lines, start=1):
            _draw(axes, one, line, place)
        axes.set_ylim(0, 1)
        axes.set_xlabel(f"gain over the arm compared with, in {one.unit} ({scale_of(one.metric).title})")
        axes.set_ylabel("share of runs with more")
        axes.legend(frameon=False, fontsize=8, loc="lower left")
        return svg_text(figure, name, f"Performance profiles of {len(lines)} arms over {len(one.tasks)} tasks")


def _draw(axes: Axes, one: MetricOverTasks, line: ArmOverTasks, place: int) -> None:
    assert line.profile is not None, "only arms with a profile are drawn"
    style, at = arm_style(place), [one.gain(value) for value in line.profile.at]
    axes.step(at, line.profile.share, where="post", label=line.arm, linewidth=1.6, **style)
    axes.fill_between(
        at, line.profile.share_low, line.profile.share_high, step="post", alpha=0.12, linewidth=0, color=style["color"]
    )
