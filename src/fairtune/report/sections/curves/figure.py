"""The figure of validation score and training loss over steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fairtune.analysis.scales import scale_of
from fairtune.report.content import ArmRow, Header
from fairtune.report.figures.axes import log_if_wide
from fairtune.report.figures.canvas import INK, drawing, mark_arm, new_figure, svg_text
from fairtune.report.figures.palette import arm_style
from fairtune.report.figures.rows import LETTER_INCHES, NARROW, cut_middle, legend_columns
from fairtune.report.sections.curves.content import BANDS, LOSSES, Curve, Points, loss_groups
from fairtune.settings.metrics import METRICS

LARGEST = 30.0
"""A target loss beyond any that a plot could show."""
PANEL_INCHES, HANDLE_INCHES = 2.5, 0.55
LOSS = "training loss"


def mean_curve(curves: Sequence[Points]) -> Points:
    """The mean at every step that all the curves have; a run that stopped early ends the mean, it does not bend it."""
    return tuple((step, sum(values) / len(values)) for step, values in shared_steps(curves))


def shared_steps(curves: Sequence[Points]) -> list[tuple[int, list[float]]]:
    """The steps that all the curves have, with the value of each."""
    if not curves:
        return []
    by_step = [dict(curve) for curve in curves]
    shared = sorted(set.intersection(*(set(curve) for curve in by_step)))
    return [(step, [curve[step] for curve in by_step]) for step in shared]


def curves_svg(header: Header, rows: Sequence[ArmRow], curves: Sequence[Curve], width: float) -> str | None:
    """The figure for the page, which names the arms itself; None where no run has two points."""
    with drawing():
        figure = draw_curves(header, rows, curves, width, legend=False)
        if figure is None:
            return None
        return svg_text(figure, f"curves-{width:.0f}", "Learning curves by arm")


def draw_curves(
    header: Header, rows: Sequence[ArmRow], curves: Sequence[Curve], width: float = 6.8, legend: bool = True
) -> Figure | None:
    """Validation score and training loss over steps: an arm's mean and the range of its runs.

    Arms whose training loss is another quantity have a panel of their own; what has one point only is in the table.

    Args:
        width: in inches.
    """
    scale, named = scale_of(header.metric), {row.arm: place for place, row in enumerate(rows)}
    panels: list[tuple[str, list[str], Callable[[Curve], Points], float]] = []
    if any(len(curve.score) > 1 for curve in curves):
        panels.append((f"validation {scale.axis}", list(named), lambda curve: curve.score, scale.factor))
    of_tokens = " (nats per token)" if header.text is not None else ""
    for title, arms in loss_groups(rows)[:LOSSES]:
        if any(len(curve.loss) > 1 for curve in curves if curve.arm in arms):
            panels.append((f"{LOSS}{of_tokens}{title}", arms, lambda curve: curve.loss, 1))
    if not panels:
        return None
    columns = 1 if width < NARROW else min(2, len(panels))
    lines = math.ceil(len(panels) / columns)
    across = legend_columns([f"{row.arm} (n = {len(row.scores)})" for row in rows], width)
    entries = math.ceil(len(rows) / across) if legend else 0
    with drawing():
        figure = new_figure(width, 0.3 + PANEL_INCHES * lines + 0.19 * entries)
        grid = figure.subplots(lines, columns, squeeze=False)
        for axes, (title, arms, points, factor) in zip(grid.flat, panels, strict=False):
            for arm in arms:
                own = [curve for curve in curves if curve.arm == arm]
                _draw_arm(axes, named[arm], arm, own, points, factor, band=len(arms) <= BANDS)
            axes.set_title(title, loc="left")
            axes.set_xlabel("optimizer step")
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        if not panels[0][0].startswith(LOSS):
            level = _draw_target(grid.flat[0], header)
            scores = [score for curve in curves for _, score in curve.score]
            if scale.plain:
                log_if_wide(grid.flat[0], "y", scores if level is None else [level, *scores])
        if legend:
            draw_legend(figure, across)
    return figure


def draw_legend(figure: Figure, columns: int) -> None:
    """Name the arms below a figure, in so many columns."""
    most = figure.get_figwidth() / LETTER_INCHES - HANDLE_INCHES / LETTER_INCHES
    found: dict[str, Artist] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found[cut_middle(str(label), most)] = handle
    if found:
        figure.legend(
            list(found.values()), list(found), loc="outside lower center", ncols=min(columns, len(found)), frameon=False,
            labelcolor=INK,
        )  # fmt: skip


def _draw_target(axes: Axes, header: Header) -> float | None:
    """The target as a thin line, where it is one of this metric, or this follows from the loss alone; returns where it is drawn."""
    target, metric = header.target, METRICS.get(header.metric)
    if target is None or target.value > LARGEST or metric is None or not axes.lines:
        return None
    if target.metric == header.metric:
        level = metric.factor * target.value
    elif metric.from_loss is not None and target.metric == "loss":
        level = metric.from_loss(target.value)
    else:
        return None
    axes.axhline(level, color=INK, linewidth=0.8, linestyle=(0, (6, 3)), alpha=0.7, zorder=1)
    where = (0.99, level)
    axes.annotate(
        f"target {'loss ' if header.text else ''}{target.figure}", where, xycoords=axes.get_yaxis_transform(), xytext=(0, 2),
        textcoords="offset points", ha="right", va="bottom", fontsize=7.5,
    )  # fmt: skip
    return level


def _draw_arm(
    axes: Axes, place: int, arm: str, curves: list[Curve], points: Callable[[Curve], Points], factor: float, band: bool
) -> None:
    """An arm's mean with the range of its finished runs, and those that are not finished as they are."""
    style = arm_style(place)
    for curve in curves:
        if curve.status != "finished":
            found = points(curve)
            (line,) = axes.plot(
                [x for x, _ in found], [factor * y for _, y in found], linewidth=0.7, alpha=0.5, **style
            )
            mark_arm(line, place)
    finished = [points(curve) for curve in curves if curve.status == "finished"]
    shared = shared_steps(finished)
    if not shared:
        return
    steps = [step for step, _ in shared]
    if band and len(finished) > 1:
        low, high = ([factor * edge(values) for _, values in shared] for edge in (min, max))
        mark_arm(axes.fill_between(steps, low, high, color=style["color"], alpha=0.13, linewidth=0), place)
    mean = [factor * value for _, value in mean_curve(finished)]
    marker = "o" if len(mean) < 12 else ""
    label = f"{arm} (n = {len(finished)})"
    (line,) = axes.plot(steps, mean, linewidth=1.6, marker=marker, markersize=3.5, label=label, **style)
    mark_arm(line, place)
