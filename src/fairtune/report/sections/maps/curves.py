"""Curves of maps: SOM use over training, and the validation score against the hidden units that are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fairtune.analysis.maps import UnitsScore
from fairtune.analysis.scales import scale_of
from fairtune.report.figures.canvas import new_figure
from fairtune.report.figures.palette import arm_style
from fairtune.report.figures.rows import legend_columns
from fairtune.report.sections.maps.content import RunMaps

MARKERS = "osD^vP*X"
"""One mark per arm, beside its colour."""
Points = list[tuple[int, float]]


def use_curve(runs: Sequence[RunMaps], places: Mapping[str, int], width: float = 6.8) -> Figure:
    """One thin line per seed, a thick one for the median over finished seeds.

    Args:
        places: of each arm among all arms of the study, which fixes its colour.
        width: in inches.
    """
    arms = list(dict.fromkeys(run.arm for run in runs))
    figure = new_figure(width, 3.1 + 0.19 * max(0, -(-len(arms) // 2) - 1))
    axes = figure.subplots()
    for arm in arms:
        _draw_use(axes, arm, places[arm], [run for run in runs if run.arm == arm])
    axes.set(ylim=(-3, 103), xlabel="optimizer step", xlim=(0, None))
    axes.set_title("SOM use (% of examples since the pass before)", loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.grid(axis="y", color=axes.xaxis.label.get_color(), alpha=0.12, linewidth=0.6)
    key_below(figure, axes)
    return figure


def key_below(figure: Figure, axes: Axes) -> None:
    """The key of arms under the figure."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        ink, across = axes.xaxis.label.get_color(), legend_columns(labels, figure.get_figwidth())
        figure.legend(handles, labels, loc="outside lower center", ncols=across, frameon=False, labelcolor=ink)


def median_line(lines: Sequence[Points]) -> Points:
    """The median at every step that all lines have."""
    by_step = [dict(line) for line in lines]
    shared = sorted(set.intersection(*(set(line) for line in by_step))) if by_step else []
    return [(step, median(line[step] for line in by_step)) for step in shared]


def _draw_use(axes: Axes, arm: str, place: int, runs: Sequence[RunMaps]) -> None:
    style, mark = arm_style(place), MARKERS[place % len(MARKERS)]
    lines = {run.seed: [(one.step, 100 * one.use) for one in run.passes if one.use is not None] for run in runs}
    ended = [run for run in runs if run.status == "finished"]
    for line in lines.values():
        axes.plot([x for x, _ in line], [y for _, y in line], linewidth=0.7, alpha=0.5, **style)
    chosen = median_line([lines[run.seed] for run in ended or runs])
    name = f"{arm}, would have been" if runs[0].watches_only else arm
    axes.plot(
        [x for x, _ in chosen], [y for _, y in chosen], linewidth=1.8, marker=mark, markersize=4.5,
        label=f"{name} (n = {len(ended)})" if ended else f"{name} (not finished)", **style,
    )  # fmt: skip


MOST_NUMBERED = 12
"""Points of an arm that all have their number; of more, only the first and the last."""


def pruning_curve(runs: Sequence[RunMaps], places: Mapping[str, int], metric: str, width: float = 6.8) -> Figure:
    """Training goes from left to right: units become fewer. Thin lines are seeds, the thick one medians.

    Args:
        places: of each arm among all arms of the study, which fixes its colour.
        width: in inches.
    """
    arms = list(dict.fromkeys(run.arm for run in runs))
    by_epoch = all(len({one.epoch for one in run.scores}) == len(run.scores) for run in runs)
    figure = new_figure(width, 3.4 + 0.19 * max(0, -(-len(arms) // 2) - 1))
    axes = figure.subplots()
    for arm in arms:
        _draw_pruning(
            axes, arm, places[arm], [run for run in runs if run.arm == arm], scale_of(metric).factor, by_epoch
        )
    start, least = _range(runs)
    axes.set_xlim(start + 0.04 * max(1, start - least), least - 0.04 * max(1, start - least))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlabel("hidden units left (fewer to the right)")
    axes.set_title(f"validation {scale_of(metric).axis}; numbers are {'epochs' if by_epoch else 'steps'}", loc="left")
    axes.grid(axis="y", color=axes.xaxis.label.get_color(), alpha=0.12, linewidth=0.6)
    axes.margins(y=0.12)
    key_below(figure, axes)
    return figure


def _draw_pruning(axes: Axes, arm: str, place: int, runs: Sequence[RunMaps], factor: float, by_epoch: bool) -> None:
    style, mark = arm_style(place), MARKERS[place % len(MARKERS)]
    for run in runs:
        axes.plot(
            [one.units for one in run.scores], [factor * one.score for one in run.scores], marker=mark, markersize=2,
            linewidth=0.7, alpha=0.45, **style,
        )  # fmt: skip
    ended = [run for run in runs if run.status == "finished"]
    middle = _medians([run.scores for run in ended or runs])
    if not middle:
        return
    axes.plot(
        [one.units for one in middle], [factor * one.score for one in middle], marker=mark, markersize=5,
        linewidth=1.8, label=f"{arm} (n = {len(ended)})" if ended else f"{arm} (not finished)", **style,
    )  # fmt: skip
    numbers: dict[tuple[int, float], list[str]] = {}
    for one in middle if len(middle) <= MOST_NUMBERED else (middle[0], middle[-1]):
        numbers.setdefault((one.units, factor * one.score), []).append(str(one.epoch if by_epoch else one.step))
    for where, numbered in numbers.items():
        axes.annotate(", ".join(numbered), where, xytext=(5, 4), textcoords="offset points", fontsize=7.5)


def _range(runs: Sequence[RunMaps]) -> tuple[int, int]:
    """Units at the start, and the fewest; down to none where most were removed, so that the axis does not flatter."""
    start = max((one.units_at_start or one.units or 1 for run in runs for one in run.passes), default=1)
    least = min((one.units for run in runs for one in run.scores), default=start)
    return start, 0 if 2 * least < start else min(least, start - 1)


def _medians(scores: Sequence[Sequence[UnitsScore]]) -> list[UnitsScore]:
    """Medians of units and of scores at every step that all seeds have."""
    by_step = [{one.step: one for one in run} for run in scores]
    shared = sorted(set.intersection(*(set(run) for run in by_step))) if by_step else []
    return [
        UnitsScore(
            step, by_step[0][step].epoch, round(median(run[step].units for run in by_step)),
            median(run[step].score for run in by_step),
        )
        for step in shared
    ]  # fmt: skip
