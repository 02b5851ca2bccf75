"""The figure of attention logits: how far apart they lie in each layer, for every arm and in the checkpoint."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from fairtune.report.figures.canvas import INK, drawing, new_figure, svg_text
from fairtune.report.figures.palette import arm_style
from fairtune.report.figures.rows import NARROW
from fairtune.report.init_cards import CardSummary, origin_of
from fairtune.report.sections.start.attention import spread_curves

MARKS = ("o", "s", "^", "D", "v", "P", "X")
PANEL_TITLES = {
    "attentions": "spread of attention logits",
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "decoder to encoder",
}
Heads = list[list[float]]
"""Values by layer, then head."""


def spread_svg(cards: Sequence[CardSummary], arms: Sequence[str], from_scratch: bool, width: float = 6.8) -> str | None:
    """A line over the layers, one dot per head; None if no arm has measured logits.

    Arms that start with the same logits share a line; those with the checkpoint's own share its dashed one.

    Args:
        width: in inches.
    """
    measured = [card for card in cards if spread_curves(card.attention, "spread")]
    if not measured:
        return None
    places = {arm: place for place, arm in enumerate(arms)}
    attentions = list(dict.fromkeys(name for card in measured for name in spread_curves(card.attention, "spread")))
    origin, narrow = origin_of(from_scratch), width < NARROW
    with drawing():
        lines = [_lines(attention, measured, origin.name) for attention in attentions]
        labels = [textwrap.fill(" = ".join(names), 44 if narrow else 90) for names, _ in max(lines, key=len)]
        columns = 1 if narrow or max(map(len, labels)) > 32 else min(3, len(labels))
        rows = sum(label.count("\n") + 1 for label in labels) if columns == 1 else math.ceil(len(labels) / columns)
        shape = (len(attentions), 1) if narrow else (1, len(attentions))
        figure = new_figure(width, 0.6 + 2.5 * shape[0] + 0.19 * rows)
        panels = list(figure.subplots(*shape, sharey=True, squeeze=False).flat)
        for axes, attention, found in zip(panels, attentions, lines, strict=True):
            _draw(axes, found, places, origin.name)
            _axes(axes, PANEL_TITLES.get(attention, attention), max(len(heads) for _, heads in found))
        handles = panels[max(range(len(lines)), key=lambda i: len(lines[i]))].get_lines()
        handles = [line for line in handles if not str(line.get_label()).startswith("_")]
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, labelcolor=INK)
        return svg_text(
            figure, f"spread-{width:.0f}", f"Spread of attention logits by layer, for every arm and in {origin.named}"
        )


def _lines(attention: str, cards: list[CardSummary], origin: str) -> list[tuple[list[str], Heads]]:
    """What is drawn of one sort of attention: names that share a line, and its values; the checkpoint's first."""
    before = next(
        (found for card in cards if (found := spread_curves(card.attention, "checkpoint").get(attention))), None
    )
    lines: list[tuple[list[str], Heads]] = [] if before is None else [([origin], before)]
    for card in cards:
        heads = spread_curves(card.attention, "spread").get(attention)
        if not heads:
            continue
        same = next((names for names, known in lines if _same(heads, known)), None)
        if same is None:
            lines.append(([card.arm], heads))
        else:
            same.append(card.arm)
    return lines


def _draw(axes: Axes, lines: list[tuple[list[str], Heads]], places: dict[str, int], origin: str) -> None:
    for turn, ((name, *_), heads) in enumerate(lines):
        means = [fmean(values) for values in heads]
        if name == origin and name not in places:
            colour = INK
            axes.plot(range(len(means)), means, "--", color=INK, linewidth=1.3, label=name, zorder=3)
        else:
            style, mark = arm_style(places[name]), MARKS[places[name] % len(MARKS)]
            colour = style["color"]
            axes.plot(range(len(means)), means, marker=mark, ms=4.5, linewidth=1.8, label=name, zorder=4, **style)
        _dots(axes, heads, colour, 0.07 * turn)


def _dots(axes: Axes, heads: Heads, colour: str, aside: float) -> None:
    points = [(layer + aside, value) for layer, values in enumerate(heads) for value in values]
    axes.plot(*zip(*points, strict=True), "o", color=colour, markersize=2.2, alpha=0.35, markeredgewidth=0, zorder=2)


def _axes(axes: Axes, title: str, layers: int) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel("layer, from 0")
    axes.set_yscale("log", nonpositive="mask")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks(range(0, layers, math.ceil(layers / 12)))
    axes.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)


def _same(ours: Heads, theirs: Heads) -> bool:
    """Whether two sets of logits differ by no more than rounding."""
    pairs = [pair for a, b in zip(ours, theirs, strict=False) for pair in zip(a, b, strict=False)]
    return len(ours) == len(theirs) and all(math.isclose(a, b, rel_tol=1e-6) for a, b in pairs)
