"""The map over training: small maps side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from fairtune.analysis.maps import MapRecord
from fairtune.report.canvas import new_figure
from fairtune.report.maps.cells import extent
from fairtune.report.maps.class_key import class_key, key_rows
from fairtune.report.maps.combined_map import draw_combined
from fairtune.report.maps.words import units_left, used, when

MOST = 12
ACROSS = 4
WIDTH = 2.3


def over_epochs(records: Sequence[MapRecord], title: str) -> Figure:
    """Class and reliability of every cell after each labelling pass; of many passes some, the first and last among them."""
    passes, chosen = [record.figures for record in records], spread_out(records)
    left, right, top, bottom = extent(records[0].grid)
    across = min(ACROSS, len(chosen))
    down = math.ceil(len(chosen) / across)
    height = min(WIDTH * (bottom - top) / (right - left), 2.2 * WIDTH)
    figure = new_figure(max(across * WIDTH, 2 * WIDTH), down * (height + 0.4) + 0.35 + 0.2 * key_rows(records[0]))
    for place, axes in enumerate(figure.subplots(down, across, squeeze=False).flat):
        if place >= len(chosen):
            axes.set_axis_off()
            continue
        one = chosen[place].figures
        draw_combined(axes, chosen[place], cell=0, small=True)
        axes.set_title(f"{when(one, passes)}: {used(one)}{units_left(one)}", loc="left", fontsize=8)
    figure.suptitle(f"The map over training, {title}", x=0.01, ha="left", fontsize=9.5)
    class_key(figure, records[-1], hatched=False)
    return figure


def spread_out(records: Sequence[MapRecord], most: int = MOST) -> list[MapRecord]:
    """At most so many, evenly, with the first and the last."""
    if len(records) <= most:
        return list(records)
    return [records[place] for place in np.linspace(0, len(records) - 1, most).round().astype(int)]
