"""Figures for papers and notebooks: nothing that is written in them is cut off, however long the names."""

from __future__ import annotations

import itertools
import warnings

import pytest
from made_ledger import QK, ArmSpec, make_study

from fairtune.report.figures.paper import COLUMN, PAGE
from fairtune.report.figures.rows import cut_middle
from fairtune.report.plots import PLOTS, PlotData, plot_data
from fairtune.report.sections.pareto.figure import LINE_POINTS, name_heights


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> PlotData:
    arms = {
        "baseline": ArmSpec([336, 338, 334]),
        "baseline-fast": ArmSpec([340, 342, 338], lr=1e-4),
        "oelm-random-orthogonal": ArmSpec([300, 302, 301], lr=1e-4, methods=QK),
        "oelm-freeze-trainable": ArmSpec([310, 312, 311], lr=1e-4, methods=QK),
        "very-long-name-" * 5 + "x" * 5: ArmSpec([305, 308, 304], lr=1e-4, methods=QK),
    }
    return plot_data(make_study(tmp_path_factory.mktemp("runs") / "runs", arms, margin="1.5%").results())


@pytest.mark.parametrize("width", [COLUMN, PAGE])
@pytest.mark.parametrize("name", ["forest", "scores", "curves"])
def test_every_word_is_inside_the_figure(name: str, width: float, data: PlotData) -> None:
    figure = PLOTS[name](data, width)
    assert figure is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a layout that found no room
        figure.draw_without_rendering()
    drawn = figure.get_tightbbox()
    assert drawn.x0 >= -0.02
    assert drawn.x1 <= width + 0.02


def test_a_name_is_cut_in_its_middle() -> None:
    assert cut_middle("a-short-name", 12) == "a-short-name"
    assert cut_middle("a-name-that-is-too-long", 12) == "a-name…-long"


def test_names_of_points_that_lie_close_are_stacked_below_the_top() -> None:
    places = [(10.0 + n % 3 / 10, 90.0 + n) for n in range(10)] + [(10.0, 5.0), (300.0, 95.0)]
    heights = name_heights(places, top=120.0)
    stack = sorted(heights[:10])
    assert all(above - below >= LINE_POINTS - 1e-9 for below, above in itertools.pairwise(stack))
    assert stack[-1] <= 120
    assert heights[10:] == [5.0, 95.0], "others stay beside their points"
