"""The figures of a report: primary comparisons, and scores by arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fairtune.analysis.arm_pairs import BOTH, COPY, SETTINGS, SIMPLE
from fairtune.analysis.results import Results
from fairtune.core.numbers import confidence, low_to_high
from fairtune.core.printable import with_printable_texts
from fairtune.report.content import ArmRow, Header, Versus
from fairtune.report.evidence import arm_rows, make_header
from fairtune.report.figures.axes import log_if_wide, symlog_if_wide
from fairtune.report.figures.canvas import drawing, new_figure, svg_text
from fairtune.report.figures.palette import GREY, VERDICTS, arm_style
from fairtune.settings.learners import MAJORITY
from fairtune.settings.metrics import METRICS
from fairtune.settings.scales import Scale, scale_of

ROW_INCHES = 0.36
Rows = Sequence[ArmRow]


def scores_svg(header: Header, rows: Rows) -> str:
    """Every seed's score of every arm, with mean and interval, beside the reference's mean."""
    with drawing():
        figure = new_figure(6.8, 1.0 + ROW_INCHES * len(rows))
        _draw_scores(figure.subplots(), header, rows)
        return svg_text(figure, "scores", "Scores by arm: seeds, mean and interval")


def differences_svg(header: Header, rows: Rows) -> str:
    """Each arm's primary comparison, with both of its intervals and its verdict."""
    with drawing():
        figure = new_figure(6.8, 1.0 + ROW_INCHES * max(1, len(rows) - 1))
        _draw_differences(figure.subplots(), header, rows)
        return svg_text(figure, "differences", "Differences to the arm compared with, with intervals")


def save_png(results: Results, path: Path) -> None:
    """Comparisons and scores side by side, as an image for a README."""
    header, rows = with_printable_texts((make_header(results), arm_rows(results)))
    with drawing(ink="black", page="white"):
        figure = new_figure(12.0, 1.0 + ROW_INCHES * len(rows))
        left, right = figure.subplots(1, 2)
        _draw_differences(left, header, rows)
        _draw_scores(right, header, rows)
        figure.savefig(path, format="png", dpi=160, facecolor="white", metadata={"Software": None})


def _draw_scores(axes: Axes, header: Header, rows: Rows) -> None:
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
            _place_apart(axes, place, by * summary.mean, ends, text, arm_style(place)["color"])
    _label_arms(axes, [(row.arm, row.summaries[header.metric].n) for row in rows])
    _set_apart(axes, [row.learner is not None and row.versus is not None for row in rows])
    if scale.plain:
        highs = [high for row in rows if (high := row.summaries[header.metric].high) is not None]
        log_if_wide(axes, "x", [*highs, *(score for row in rows for score in row.scores.values())])
    elif header.metric in METRICS:  # no room beyond what the metric can be
        low, high = (scale.factor * bound for bound in METRICS[header.metric].bounds)
        left, right = axes.get_xlim()
        axes.set_xlim(max(left, low - 0.01 * (high - low)), min(right, high + 0.01 * (high - low)))
    which = f"{scale.title} (best, lower is better)" if header.text is not None else scale.heading
    axes.set_title(f"{which}: seeds ●, mean ◆, {confidence(header.confidence)} interval", loc="left")


def _draw_differences(axes: Axes, header: Header, rows: Rows) -> None:
    scale = scale_of(header.metric)
    far = {row.arm for row in rows if row.learner == MAJORITY}
    compared = [row.versus for row in rows if row.versus is not None]
    compared.sort(key=lambda versus: versus.role != COPY)  # what must be nothing comes first
    axes.axvline(0, color=GREY, linewidth=1, linestyle="--", zorder=1)
    margins = [_unit(scale, versus) * versus.margin for versus in compared if versus.margin is not None]
    if margins:
        margin = max(margins) if scale.lower_is_better else -max(margins)
        axes.axvspan(*sorted((0.0, margin)), color=GREY, alpha=0.15, linewidth=0, zorder=0)
    for place, versus in enumerate(compared):
        if versus.low is None or versus.high is None or versus.difference is None:
            axes.annotate(versus.word, (0, place), xytext=(6, -3), textcoords="offset points", fontsize=7.5)
            continue
        if versus.arm in far:
            continue
        by, colour = _unit(scale, versus), VERDICTS.get(versus.word, GREY)
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
        axes.annotate(
            versus.word, (difference, place), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=7.5
        )
    for place, versus in enumerate(compared):
        if versus.arm in far and versus.difference is not None:
            by, show = _unit(scale, versus), partial(scale.signed, like=versus.base)
            ends = [by * (versus.difference if end is None else end) for end in (versus.low, versus.high)]
            text = f"{versus.word}, {show(versus.difference)} ({low_to_high(versus.low, versus.high, show)})"
            _place_apart(axes, place, by * versus.difference, ends, text, VERDICTS.get(versus.word, GREY))
    _label_arms(axes, [(f"{versus.arm} – {versus.reference}", versus.n) for versus in compared])
    _set_apart(axes, [versus.role == SIMPLE for versus in compared])
    if scale.plain:
        drawn = [_ends(scale, versus) for versus in compared if versus.low is not None]
        symlog_if_wide(axes, drawn, least=max(margins, default=1.0))
    bars = (
        f"thick alone, thin among {header.family}" if header.family > 1 else f"{confidence(header.confidence)} interval"
    )
    better = f"{bars}; lower is better" if scale.lower_is_better else bars
    axes.set_title(f"difference in {'%' if scale.plain else 'points'} ({better})", loc="left")


def _unit(scale: Scale, versus: Versus) -> float:
    """From the metric to what is drawn: points, or of a plain number percent of the other arm's."""
    return 100 / versus.base if scale.plain and versus.base else scale.factor


def _ends(scale: Scale, versus: Versus) -> tuple[float, float]:
    by = _unit(scale, versus)
    low = versus.low if versus.family_low is None else versus.family_low
    high = versus.high if versus.family_high is None else versus.family_high
    return by * (low or 0.0), by * (high or 0.0)


def _place_apart(axes: Axes, place: int, value: float, ends: list[float], text: str, colour: str) -> None:
    """The most frequent class; where it lies so far off that beside it nothing could be told apart, at the edge, in figures."""
    low, high = axes.get_xlim()
    axes.set_xlim(low, high)
    if not axes.lines or low <= value <= high:
        axes.plot([max(ends[0], low), min(ends[1], high)], [place, place], color=colour, linewidth=2, zorder=3)
        axes.plot([value], [place], "D", color=colour, markersize=6, zorder=4)
        return
    left = value < low
    axes.annotate(
        f"← {text}" if left else f"{text} →", (0.01 if left else 0.99, place), xycoords=axes.get_yaxis_transform(),
        ha="left" if left else "right", va="center", fontsize=7.5, color=colour,
    )  # fmt: skip


def _set_apart(axes: Axes, simple: list[bool]) -> None:
    """A line above the simple baselines, where they stand below other arms."""
    if any(simple) and not all(simple):
        place = simple.index(True) - 0.5
        axes.axhline(place, color=GREY, linewidth=0.8, zorder=1)
        axes.annotate(
            "simple baselines", (0.995, place), xycoords=axes.get_yaxis_transform(), xytext=(0, -2),
            textcoords="offset points", ha="right", va="top", fontsize=6.5, color=GREY,
        )  # fmt: skip


def _label_arms(axes: Axes, arms: list[tuple[str, int]]) -> None:
    axes.set_yticks(range(len(arms)), [f"{arm} (n = {n})" for arm, n in arms])
    axes.set_ylim(len(arms) - 0.4, -0.6)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=axes.xaxis.label.get_color(), alpha=0.12, linewidth=0.6)
