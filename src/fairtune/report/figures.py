"""The figures of a report: scores by arm, differences to the reference, learning curves."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fairtune.analysis.results import Results
from fairtune.report.canvas import drawing, new_figure
from fairtune.report.content import ArmRow, Curve, ReportContent, Versus
from fairtune.report.curves import mean_curve
from fairtune.report.gathering import make_content
from fairtune.report.numbers import confidence, metric_unit
from fairtune.report.palette import GREY, VERDICTS, arm_style
from fairtune.report.svg import INK, svg_text

ROW_INCHES = 0.36


def scores_svg(content: ReportContent) -> str:
    """Every seed's score of every arm, with mean and interval, beside the reference's mean."""
    with drawing():
        figure = new_figure(6.8, 1.0 + ROW_INCHES * len(content.rows))
        _draw_scores(figure.subplots(), content)
        return svg_text(figure, "scores", "Scores by arm: seeds, mean and interval")


def differences_svg(content: ReportContent) -> str:
    """Each arm's difference to the reference, with its interval and verdict."""
    with drawing():
        figure = new_figure(6.8, 1.0 + ROW_INCHES * max(1, len(content.rows) - 1))
        _draw_differences(figure.subplots(), content)
        return svg_text(figure, "differences", "Differences to the reference with intervals")


def curves_svg(content: ReportContent) -> str:
    """Validation score and training loss over steps, a thin line a seed, a thick one for the arm's mean."""
    with drawing():
        figure = new_figure(6.8, 3.2)
        left, right = figure.subplots(1, 2)
        for place, row in enumerate(content.rows):
            curves = [curve for curve in content.curves if curve.arm == row.arm]
            _draw_curves(
                left, place, row.arm, [curve.score for curve in _finished(curves)], [c.score for c in curves], 100
            )
            _draw_curves(
                right, place, row.arm, [curve.loss for curve in _finished(curves)], [c.loss for c in curves], 1
            )
        left.set_title(f"validation {content.header.metric_title} ({metric_unit(content.header.metric)})", loc="left")
        right.set_title("training loss", loc="left")
        for axes in (left, right):
            axes.set_xlabel("optimizer step")
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
        handles, labels = left.get_legend_handles_labels()
        if handles:
            columns = min(3, len(handles))
            figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, labelcolor=INK)
        return svg_text(figure, "curves", "Learning curves by arm")


def save_png(results: Results, path: Path) -> None:
    """Scores and differences side by side, as an image for a README."""
    content = make_content(results)
    with drawing(ink="black", page="white"):
        figure = new_figure(11.0, 1.0 + ROW_INCHES * len(content.rows))
        left, right = figure.subplots(1, 2)
        _draw_scores(left, content)
        _draw_differences(right, content)
        figure.savefig(path, format="png", dpi=160, facecolor="white", metadata={"Software": None})


def _draw_scores(axes: Axes, content: ReportContent) -> None:
    header = content.header
    reference = next((row for row in content.rows if row.versus is None), None)
    if reference is not None and reference.scores:
        mean = 100 * reference.summaries[header.metric].mean
        axes.axvline(mean, color=GREY, linewidth=1, linestyle="--", zorder=1)
        if header.margin is not None:
            axes.axvspan(mean - 100 * header.margin, mean, color=GREY, alpha=0.15, linewidth=0, zorder=0)
    for place, row in enumerate(content.rows):
        colour = arm_style(place)["color"]
        summary = row.summaries[header.metric]
        if summary.n == 0:
            continue
        if summary.low is not None and summary.high is not None:
            axes.plot([100 * summary.low, 100 * summary.high], [place, place], color=colour, linewidth=2, zorder=3)
        axes.plot([100 * summary.mean], [place], "D", color=colour, markersize=6, zorder=4)
        dots = [100 * score for score in row.scores.values()]
        axes.plot(dots, [place + 0.24] * len(dots), "o", color=colour, markersize=4, alpha=0.65, linewidth=0, zorder=2)
    _label_arms(axes, [(row.arm, row.summaries[header.metric].n) for row in content.rows])
    measured = f"{header.metric_title} ({metric_unit(header.metric)})"
    axes.set_title(f"{measured}: seeds ●, mean ◆, {confidence(header.confidence)} interval", loc="left")


def _draw_differences(axes: Axes, content: ReportContent) -> None:
    header = content.header
    rows: list[tuple[ArmRow, Versus]] = [(row, row.versus) for row in content.rows if row.versus is not None]
    axes.axvline(0, color=GREY, linewidth=1, linestyle="--", zorder=1)
    if header.margin is not None:
        axes.axvspan(-100 * header.margin, 0, color=GREY, alpha=0.15, linewidth=0, zorder=0)
    for place, (_, versus) in enumerate(rows):
        if versus.low is None or versus.high is None or versus.difference is None:
            axes.annotate(versus.word, (0, place), xytext=(6, -3), textcoords="offset points", fontsize=7.5)
            continue
        colour, difference = VERDICTS[versus.word], 100 * versus.difference
        axes.plot([100 * versus.low, 100 * versus.high], [place, place], color=colour, linewidth=2, zorder=2)
        fill = axes.get_facecolor() if versus.confounds else colour
        axes.plot(
            [difference], [place], "o", color=colour, markerfacecolor=fill, markersize=7, markeredgewidth=1.6, zorder=3
        )
        axes.annotate(
            versus.word, (difference, place), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=7.5
        )
    _label_arms(axes, [(row.arm, versus.n) for row, versus in rows])
    axes.set_title(f"difference to {header.reference} (points), {confidence(header.confidence)} interval", loc="left")


def _label_arms(axes: Axes, arms: list[tuple[str, int]]) -> None:
    axes.set_yticks(range(len(arms)), [f"{arm} (n = {n})" for arm, n in arms])
    axes.set_ylim(len(arms) - 0.4, -0.6)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=axes.xaxis.label.get_color(), alpha=0.12, linewidth=0.6)


def _finished(curves: list[Curve]) -> list[Curve]:
    return [curve for curve in curves if curve.status == "finished"]


def _draw_curves(
    axes: Axes,
    place: int,
    arm: str,
    finished: list[tuple[tuple[int, float], ...]],
    all_runs: list[tuple[tuple[int, float], ...]],
    scale: float,
) -> None:
    style = arm_style(place)
    for curve in all_runs:
        axes.plot([x for x, _ in curve], [scale * y for _, y in curve], linewidth=0.7, alpha=0.4, **style)
    mean = mean_curve(finished)
    if mean:
        label = f"{arm} (n = {len(finished)})"
        marker = "o" if len(mean) < 12 else ""
        axes.plot(
            [x for x, _ in mean],
            [scale * y for _, y in mean],
            linewidth=1.8,
            marker=marker,
            markersize=3.5,
            label=label,
            **style,
        )
