"""The forest plot for papers and notebooks; the page draws its own, in strips."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairtune.analysis.arm_pairs import BOTH, COPY, SETTINGS, SIMPLE
from fairtune.analysis.scales import scale_of
from fairtune.core.numbers import confidence, low_to_high
from fairtune.report.content import ArmRow, Header
from fairtune.report.figures.axes import symlog_if_wide
from fairtune.report.figures.canvas import drawing, new_figure
from fairtune.report.figures.palette import GREY, VERDICTS
from fairtune.report.figures.rows import NARROW, entitle, figure_height, label_arms, place_apart, set_apart
from fairtune.report.sections.forest.content import drawn_ends, unit_of
from fairtune.settings.learners import MAJORITY

Rows = Sequence[ArmRow]


def draw_forest(header: Header, rows: Rows, width: float = 6.8) -> Figure:
    """Each arm's primary comparison, with both of its intervals and its verdict.

    Args:
        width: in inches.
    """
    with drawing():
        figure = new_figure(width, figure_height(width, sum(row.versus is not None for row in rows)))
        draw_differences(figure.subplots(), header, rows, narrow=width < NARROW)
    return figure


def draw_differences(axes: Axes, header: Header, rows: Rows, narrow: bool = False) -> None:
    """The plot on axes of their own, or beside others.

    Args:
        narrow: names and verdicts stand above the rows.
    """
    scale = scale_of(header.metric)
    far = {row.arm for row in rows if row.learner == MAJORITY}
    compared = [row.versus for row in rows if row.versus is not None]
    plain_differences = {row.arm: row.raw.difference for row in rows if row.raw is not None}
    compared.sort(key=lambda versus: versus.role != COPY)  # what must be nothing comes first
    axes.axvline(0, color=GREY, linewidth=1, linestyle="--", zorder=1)
    margins = [unit_of(scale, versus) * versus.margin for versus in compared if versus.margin is not None]
    if margins:
        margin = max(margins) if scale.lower_is_better else -max(margins)
        axes.axvspan(*sorted((0.0, margin)), color=GREY, alpha=0.15, linewidth=0, zorder=0)
    for place, versus in enumerate(compared):
        if versus.low is None or versus.high is None or versus.difference is None:
            if not narrow:
                axes.annotate(versus.word, (0, place), xytext=(6, -3), textcoords="offset points", fontsize=7.5)
            continue
        if versus.arm in far:
            continue
        by, colour = unit_of(scale, versus), VERDICTS.get(versus.word, GREY)
        difference = by * versus.difference
        family = header.simple_family if versus.role == SIMPLE else header.family
        if versus.family_low is not None and versus.family_high is not None and family > 1:
            ends = [by * versus.family_low, by * versus.family_high]
            axes.plot(ends, [place, place], color=colour, linewidth=1, zorder=2)
        axes.plot([by * versus.low, by * versus.high], [place, place], color=colour, linewidth=3.2, zorder=2)
        fill = axes.get_facecolor() if versus.about == BOTH else colour
        marker = "s" if versus.about == SETTINGS else "o"
        axes.plot(
            [difference],
            [place],
            marker,
            color=colour,
            markerfacecolor=fill,
            markersize=7,
            markeredgewidth=1.6,
            zorder=3,
        )
        if not narrow:
            axes.annotate(
                versus.word, (difference, place), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=7.5
            )
        if (raw := plain_differences.get(versus.arm)) is not None:
            axes.plot([by * raw], [place], "d", color=GREY, alpha=0.45, markersize=6, markeredgewidth=0, zorder=2)
    for place, versus in enumerate(compared):
        if versus.arm in far and versus.difference is not None:
            by, show = unit_of(scale, versus), partial(scale.signed, like=versus.base)
            ends = [by * (versus.difference if end is None else end) for end in (versus.low, versus.high)]
            text = f"{versus.word}, {show(versus.difference)} ({low_to_high(versus.low, versus.high, show)})"
            place_apart(axes, place, by * versus.difference, ends, text, VERDICTS.get(versus.word, GREY))
    verdicts = [f": {versus.word}" if narrow else "" for versus in compared]
    names = [f"{versus.arm} – {versus.reference}{word}" for versus, word in zip(compared, verdicts, strict=True)]
    label_arms(axes, [(name, versus.n) for name, versus in zip(names, compared, strict=True)], narrow)
    set_apart(axes, [versus.role == SIMPLE for versus in compared])
    if scale.plain:
        drawn = [drawn_ends(scale, versus) for versus in compared if versus.low is not None]
        symlog_if_wide(axes, drawn, least=max(margins, default=1.0))
    level = confidence(header.confidence)
    bars = f"{level}: thick alone, thin among {header.family}" if header.family > 1 else f"{level} interval"
    better = f"{bars}; lower is better" if scale.lower_is_better else bars
    entitle(axes, f"difference in {'%' if scale.plain else 'points'} ({better})", narrow)
