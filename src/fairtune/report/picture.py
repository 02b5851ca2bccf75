"""A study's picture: comparisons and scores side by side, as an image for a README."""

from __future__ import annotations

from pathlib import Path

from fairtune.analysis.results import Results
from fairtune.core.printable import with_printable_texts
from fairtune.report.evidence import arm_rows, make_header
from fairtune.report.figures.canvas import drawing, new_figure
from fairtune.report.figures.rows import ROW_INCHES
from fairtune.report.sections.forest.figure import draw_differences
from fairtune.report.sections.scores.figure import draw_arms


def save_png(results: Results, path: Path) -> None:
    """Write it."""
    header, rows = with_printable_texts((make_header(results), arm_rows(results)))
    with drawing(ink="black", page="white"):
        figure = new_figure(12.0, 1.0 + ROW_INCHES * len(rows))
        left, right = figure.subplots(1, 2)
        draw_differences(left, header, rows)
        draw_arms(right, header, rows)
        figure.savefig(path, format="png", dpi=160, facecolor="white", metadata={"Software": None})
