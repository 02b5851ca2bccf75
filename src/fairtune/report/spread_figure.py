"""The figure of attention logits: how far apart they lie in each layer, for every arm and in the checkpoint."""

from __future__ import annotations

import math
import textwrap
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from fairtune.report.attention import spread_curves
from fairtune.report.canvas import drawing, new_figure
from fairtune.report.content import ReportContent
from fairtune.report.palette import arm_style
from fairtune.report.starting import CardSummary
from fairtune.report.svg import INK, svg_text

MARKS = ("o", "s", "^", "D", "v", "P", "X")
KINDS = {
    "attentions": "spread of attention logits",
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "decoder to encoder",
}
Heads = list[list[float]]
"""Values by layer, then head."""


def spread_svg(content: ReportContent) -> str | None:
    """A line an arm over the layers, a dot a head; None if no arm has measured logits.

    Arms that start with the checkpoint's own logits are named beside its dashed line instead of being drawn on top of it.
    """
    measured = [card for card in content.cards if spread_curves(card.attention, "spread")]
    if not measured:
        return None
    places = {row.arm: place for place, row in enumerate(content.rows)}
    kinds = list(dict.fromkeys(kind for card in measured for kind in spread_curves(card.attention, "spread")))
    with drawing():
        figure = new_figure(6.8, 3.5)
        panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
        for axes, kind in zip(panels, kinds, strict=True):
            _draw(axes, kind, measured, places)
        handles, labels = panels[0].get_legend_handles_labels()
        columns = 1 if max(map(len, labels)) > 32 else min(3, len(labels))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, labelcolor=INK)
        return svg_text(figure, "spread", "Spread of attention logits by layer, for every arm and in the checkpoint")


def _draw(axes: Axes, kind: str, cards: list[CardSummary], places: dict[str, int]) -> None:
    now = {card.arm: spread_curves(card.attention, "spread").get(kind, []) for card in cards}
    before = next((found for card in cards if (found := spread_curves(card.attention, "checkpoint").get(kind))), [])
    alike = [arm for arm, heads in now.items() if before and _same(heads, before)]
    others = [arm for arm in now if arm not in alike]
    if before:
        label = textwrap.fill(" = ".join(["checkpoint", *alike]), 90)
        means = [fmean(heads) for heads in before]
        axes.plot(range(len(means)), means, "--", color=INK, linewidth=1.3, label=label, zorder=3)
        _dots(axes, before, INK, 0.0)
    for turn, arm in enumerate(others):
        style, mark = arm_style(places[arm]), MARKS[places[arm] % len(MARKS)]
        means = [fmean(heads) for heads in now[arm]]
        axes.plot(range(len(means)), means, marker=mark, markersize=4.5, linewidth=1.8, label=arm, zorder=4, **style)
        _dots(axes, now[arm], style["color"], 0.07 * (turn + 1))
    layers = max((len(heads) for heads in (before, *now.values())), default=1)
    _axes(axes, KINDS.get(kind, kind), layers)


def _dots(axes: Axes, heads: Heads, colour: str, aside: float) -> None:
    points = [(layer + aside, value) for layer, values in enumerate(heads) for value in values]
    axes.plot(*zip(*points, strict=True), "o", color=colour, markersize=2.2, alpha=0.35, markeredgewidth=0, zorder=2)


def _axes(axes: Axes, title: str, layers: int) -> None:
    axes.set_title(f"{title}: mean over heads; dots are heads", loc="left")
    axes.set_xlabel("layer, from 0")
    axes.set_yscale("log", nonpositive="mask")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(MaxNLocator(min(12, max(1, layers)), integer=True))
    axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)


def _same(ours: Heads, theirs: Heads) -> bool:
    """Whether two sets of logits differ by no more than rounding."""
    pairs = [pair for a, b in zip(ours, theirs, strict=False) for pair in zip(a, b, strict=False)]
    return len(ours) == len(theirs) and all(math.isclose(a, b, rel_tol=1e-6) for a, b in pairs)
