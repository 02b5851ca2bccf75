"""SOM use over training: the share of examples that the map pulled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fairtune.report.canvas import new_figure
from fairtune.report.maps.section import RunMaps
from fairtune.report.palette import arm_style

MARKERS = "osD^vP*X"
"""A mark an arm, beside its colour."""
Points = list[tuple[int, float]]


def use_curve(runs: Sequence[RunMaps], places: Mapping[str, int]) -> Figure:
    """A thin line a seed, a thick one for the median over finished seeds.

    Args:
        places: of each arm among all arms of the study, which fixes its colour.
    """
    arms = list(dict.fromkeys(run.arm for run in runs))
    figure = new_figure(6.8, 3.1 + 0.19 * max(0, -(-len(arms) // 2) - 1))
    axes = figure.subplots()
    for arm in arms:
        _draw_arm(axes, arm, places[arm], [run for run in runs if run.arm == arm])
    axes.set(ylim=(-3, 103), xlabel="optimizer step", xlim=(0, None))
    axes.set_title("SOM use (% of training examples since the pass before)", loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.grid(axis="y", color=axes.xaxis.label.get_color(), alpha=0.12, linewidth=0.6)
    key_below(figure, axes)
    return figure


def key_below(figure: Figure, axes: Axes) -> None:
    """The key of arms under the figure."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        ink, across = axes.xaxis.label.get_color(), columns(labels)
        figure.legend(handles, labels, loc="outside lower center", ncols=across, frameon=False, labelcolor=ink)


def columns(labels: Sequence[str]) -> int:
    """How many labels fit beside each other."""
    return max(1, min(3, len(labels), 84 // (max(map(len, labels)) + 6)))


def median_line(lines: Sequence[Points]) -> Points:
    """The median at every step that all lines have."""
    by_step = [dict(line) for line in lines]
    shared = sorted(set.intersection(*(set(line) for line in by_step))) if by_step else []
    return [(step, median(line[step] for line in by_step)) for step in shared]


def _draw_arm(axes: Axes, arm: str, place: int, runs: Sequence[RunMaps]) -> None:
    style, mark = arm_style(place), MARKERS[place % len(MARKERS)]
    lines = {run.seed: [(one.step, 100 * one.use) for one in run.passes if one.use is not None] for run in runs}
    ended = [run for run in runs if run.status == "finished"]
    for line in lines.values():
        axes.plot([x for x, _ in line], [y for _, y in line], linewidth=0.7, alpha=0.5, **style)
    chosen = median_line([lines[run.seed] for run in ended or runs])
    told = f"{arm}, would have been" if runs[0].watches_only else arm
    axes.plot(
        [x for x, _ in chosen], [y for _, y in chosen], linewidth=1.8, marker=mark, markersize=4.5,
        label=f"{told} (n = {len(ended)})" if ended else f"{told} (not finished)", **style,
    )  # fmt: skip
