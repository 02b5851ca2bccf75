"""The map over training as an animated GIF."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from matplotlib.animation import PillowWriter

from fairtune.analysis.maps import MapRecord
from fairtune.report.maps.cells import cell_width, map_figure
from fairtune.report.maps.class_key import class_key, key_rows, reliability_key
from fairtune.report.maps.combined_map import KEY, WIDTH, draw_combined
from fairtune.report.maps.over_epochs import spread_out
from fairtune.report.maps.words import units_left, used, when

MOST = 60
DOTS = 90
SECONDS = 12
"""How long it takes at most; a frame stands for a second at most and a tenth at least."""
HELD = 3
"""Frames that the last map stands for before it begins again."""


def animated(records: Sequence[MapRecord], title: str) -> bytes:
    """A frame a labelling pass, for ever."""
    passes, chosen = [record.figures for record in records], spread_out(records, MOST)
    first = records[0]
    figure = map_figure(first.grid, WIDTH, beside=KEY, above=0.55 + 0.2 * key_rows(first))
    axes, key = figure.subplots(1, 2, width_ratios=(WIDTH, KEY / 2.4))
    reliability_key(key, first)
    class_key(figure, first)
    writer = PillowWriter(fps=min(10, max(1, round(len(chosen) / SECONDS))))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.gif"
        with writer.saving(figure, str(path), dpi=DOTS):
            for place, record in enumerate(chosen):
                axes.clear()
                draw_combined(axes, record, cell_width(record.grid, WIDTH))
                one = record.figures
                axes.set_title(f"{title}, {when(one, passes)}: {used(one)}{units_left(one)}", loc="left")
                for _ in range(HELD if place == len(chosen) - 1 else 1):
                    writer.grab_frame(facecolor="white")
        return path.read_bytes()
