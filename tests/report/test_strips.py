"""Row plots: places in percent of any width, on an axis that shows zero and ends where the metric ends."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from fairtune.analysis.results import Results
from fairtune.methods.registry import registered
from fairtune.report.content import ReportContent
from fairtune.report.figures.strips import difference_axis, value_axis
from fairtune.report.sections.curves.content import SAME_LOSS, loss_groups
from fairtune.report.sections.forest.content import make_forest
from fairtune.report.sections.pareto.content import CostPoint, _with_front, cost_panels
from fairtune.report.sections.scores.content import make_scores

DRAWN = np.random.default_rng(3)
SETS = [[0.0], [5.0], [-3.0], *((DRAWN.normal(size=6) * 10.0**power).tolist() for power in range(-6, 7))]


@pytest.mark.parametrize("values", SETS)
def test_every_difference_and_zero_are_on_the_axis(values: list[float]) -> None:
    axis = difference_axis(values)
    places = [axis.at(value) for value in [*values, 0.0]]
    assert all(0 <= place <= 100 for place in places)
    assert all(axis.holds(value) for value in [*values, 0.0])
    assert all(0 <= tick.at <= 100 for tick in axis.ticks)
    ordered = sorted(values)
    assert [axis.at(value) for value in ordered] == sorted(axis.at(value) for value in ordered)


def test_what_dwarfs_the_rest_bends_the_axis_and_zero_stays_zero() -> None:
    values = [-0.5, 0.4, 300.0]
    even, bent = difference_axis(values), difference_axis(values, sizes=[0.5, 0.4, 300.0])
    assert not even.uneven
    assert bent.uneven
    assert bent.at(0.4) - bent.at(-0.5) > 5 * (even.at(0.4) - even.at(-0.5))
    assert "0" in {tick.text for tick in bent.ticks}


def test_an_axis_of_shares_ends_where_shares_end() -> None:
    axis = value_axis([97.0, 99.9], (0.0, 100.0))
    assert axis.at(100.0) == 100.0
    assert not axis.holds(100.5)
    assert value_axis([50.0, 50.0], (0.0, 100.0)).at(50.0) == pytest.approx(50.0)


def test_the_forest_has_every_comparison_once_with_its_margin_on_the_side_of_losses(content: ReportContent) -> None:
    plot = make_forest(content.header, content.rows)
    assert plot is not None
    assert [row.versus.arm for row in plot.compared] == [row.arm for row in content.rows if row.versus is not None]
    assert plot.margin is not None
    assert plot.margin[1] == plot.axis.at(0), "more is better, so what may be lost lies to the left"
    shown = next(row for row in plot.compared if row.versus.arm == "oelm-freeze")
    assert shown.alone is not None
    assert shown.family is not None
    assert shown.family[0] <= shown.alone[0] < (shown.at or 0) < shown.alone[1] <= shown.family[1]
    assert shown.raw is not None, "it is compared with its control; the plain difference to the reference is faint"
    waiting = next(row for row in plot.compared if row.versus.arm == "later")
    assert (waiting.at, waiting.alone, waiting.versus.word) == (None, None, "no verdict")


def test_lower_is_better_turns_the_margin_round(text_content: ReportContent) -> None:
    plot = make_forest(text_content.header, text_content.rows)
    assert plot is not None
    assert plot.margin is not None
    assert plot.margin[0] == plot.axis.at(0), "less is better, so what may be lost lies to the right"
    assert plot.margin[1] > plot.margin[0]


def test_the_scores_have_every_seed(content: ReportContent) -> None:
    plot = make_scores(content.header, content.rows)
    assert plot is not None
    for row, drawn in zip(content.rows, plot.rows, strict=True):
        assert len(drawn.seeds) == sum(math.isfinite(score) for score in row.scores.values())
    assert plot.rows[-1].shown == "no run is finished"


def test_no_arm_is_compared_where_none_is_finished(content: ReportContent) -> None:
    bare = tuple(replace(row, versus=None) for row in content.rows)
    assert make_forest(content.header, bare) is None


def test_losses_that_are_not_alike_have_panels_of_their_own(content: ReportContent) -> None:
    groups = dict(loss_groups(content.rows))
    assert groups[""] == ["baseline", "baseline-fast", "oelm-freeze"]
    assert groups[" of focal"] == ["focal"]
    assert groups[" of fgm"] == ["later"]


def test_methods_that_keep_the_loss_claim_no_loss_and_are_methods() -> None:
    known = registered()
    assert set(known) >= SAME_LOSS
    assert not [name for name in SAME_LOSS if "loss" in known[name].excludes]


def test_the_front_is_what_nothing_beats_in_both() -> None:
    points = [CostPoint(name, 0, score, None, None, cost, cost, cost) for name, score, cost in FRONT]
    assert [point.arm for point in _with_front(points, lower_is_better=False) if point.front] == ["cheap", "good"]
    assert [point.arm for point in _with_front(points, lower_is_better=True) if point.front] == ["cheap"]


FRONT = [("cheap", 0.7, 1.0), ("good", 0.9, 2.0), ("dear", 0.9, 3.0), ("bad", 0.75, 2.5)]


def test_costs_that_are_the_same_are_no_figure_and_times_of_runs_are_none(
    content: ReportContent, results: Results
) -> None:
    assert results.timing is None
    assert "time" not in {panel.name for panel in cost_panels(content.header, content.rows)}


def test_marks_of_a_bent_axis_leave_room_for_their_texts() -> None:
    axis = difference_axis([-92.1, 100_256.0], sizes=[0.5, 40_000.0], least=5.0)
    assert axis.uneven
    assert "0" in {tick.text for tick in axis.ticks}
    for one, other in itertools.pairwise(axis.ticks):
        assert other.at - one.at >= len(one.text) + len(other.text), f"{one.text} and {other.text} lie on each other"
