"""Scores by arm for papers and notebooks; the page draws its own, in strips."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairtune.analysis.scales import scale_of
from fairtune.core.numbers import confidence, low_to_high
from fairtune.report.content import ArmRow, Header
from fairtune.report.figures.axes import log_if_wide
from fairtune.report.figures.canvas import drawing, new_figure
from fairtune.report.figures.palette import GREY, arm_style
from fairtune.report.figures.rows import NARROW, entitle, figure_height, label_arms, place_apart, set_apart
from fairtune.settings.learners import MAJORITY
from fairtune.settings.metrics import METRICS

Rows = Sequence[ArmRow]


def draw_scores(header: Header, rows: Rows, width: float = 6.8) -> Figure:
    """Every seed's score of every arm, with mean and interval, beside the reference's mean.

    Args:
        width: in inches.
    """
    with drawing():
        figure = new_figure(width, figure_height(width, len(rows)))
        draw_arms(figure.subplots(), header, rows, narrow=width < NARROW)
    return figure


def draw_arms(axes: Axes, header: Header, rows: Rows, narrow: bool = False) -> None:
    """The plot on axes of their own, or beside others.

    Args:
        narrow: names stand above the rows.
    """
    scale = scale_of(header.metric)
    by = scale.factor
    reference = next((row for row in rows if row.versus is None), None)
    if reference is not None and math.isfinite(reference.summaries[header.metric].mean):
        mean = by * reference.summaries[header.metric].mean
        axes.axvline(mean, color=GREY, linewidth=1, linestyle="--", zorder=1)
        if header.margin is not None:
            margin = by * header.margin if scale.lower_is_better else -by * header.margin
            axes.axvspan(*sorted((mean, mean + margin)), color=GREY, alpha=0.15, linewidth=0, zorder=0)
    for place, row in enumerate(rows):
        colour = arm_style(place)["color"]
        summary = row.summaries[header.metric]
        if summary.n == 0 or row.learner == MAJORITY:
            continue
        if summary.low is not None and summary.high is not None:
            axes.plot([by * summary.low, by * summary.high], [place, place], color=colour, linewidth=2, zorder=3)
        if math.isfinite(summary.mean):
            axes.plot([by * summary.mean], [place], "D", color=colour, markersize=6, zorder=4)
        else:
            where = (0.02, place)
            axes.annotate("not a finite number", where, xycoords=axes.get_yaxis_transform(), va="center", fontsize=7.5)
        dots = [by * score for score in row.scores.values() if math.isfinite(score)]
        axes.plot(dots, [place + 0.24] * len(dots), "o", color=colour, markersize=4, alpha=0.65, linewidth=0, zorder=2)
    means = {place: row.summaries[header.metric] for place, row in enumerate(rows) if row.learner == MAJORITY}
    for place, summary in means.items():
        if summary.n:
            ends = [by * (summary.mean if end is None else end) for end in (summary.low, summary.high)]
            interval = "" if summary.low is None else f" ({low_to_high(summary.low, summary.high, scale.value)})"
            text = f"{scale.value(summary.mean)}{interval}"
            place_apart(axes, place, by * summary.mean, ends, text, arm_style(place)["color"])
    label_arms(axes, [(row.arm, row.summaries[header.metric].n) for row in rows], narrow)
    set_apart(axes, [row.learner is not None and row.versus is not None for row in rows])
    if scale.plain:
        highs = [high for row in rows if (high := row.summaries[header.metric].high) is not None]
        log_if_wide(axes, "x", [*highs, *(score for row in rows for score in row.scores.values())])
    elif header.metric in METRICS:  # no room beyond what the metric can be
        low, high = (scale.factor * bound for bound in METRICS[header.metric].bounds)
        left, right = axes.get_xlim()
        axes.set_xlim(max(left, low - 0.01 * (high - low)), min(right, high + 0.01 * (high - low)))
    which = f"{scale.title} (best, lower is better)" if header.text is not None else scale.heading
    entitle(axes, f"{which}: seeds ●, mean ◆, {confidence(header.confidence)} interval", narrow)
