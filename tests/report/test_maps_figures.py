"""Pictures of maps: right cells, readable without colour, for any grid and any number of classes and units."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from tests.made_maps import made_run

from fairtune.analysis.maps import MapRecord, read_maps
from fairtune.core.grid import Grid, Topology
from fairtune.report.figures.canvas import drawing, png, reduced
from fairtune.report.figures.palette import (
    class_colours,
    class_letters,
    faded,
    ink_on,
    strength,
)
from fairtune.report.sections.maps.cell_maps import cell_colours, combined_map, letters_of, spread_out
from fairtune.report.sections.maps.cells import extent, outlines, short_count
from fairtune.report.sections.maps.content import pass_label
from fairtune.report.sections.maps.units import component_planes, planes_of


@pytest.fixture
def records(tmp_path: Path) -> list[MapRecord]:
    return read_maps(made_run(tmp_path))


@pytest.mark.parametrize("topology", ["rectangular", "hexagonal"])
def test_cells_fill_the_map_without_gaps(topology: Topology) -> None:
    grid = Grid(5, 4, topology)
    corners = outlines(grid)
    x, y = corners[..., 0], corners[..., 1]
    areas = 0.5 * np.abs((x * np.roll(y, 1, axis=1) - y * np.roll(x, 1, axis=1)).sum(axis=1))
    apart = np.linalg.norm(grid.positions()[:, None] - grid.positions(), axis=2)
    assert areas == pytest.approx(1.0 if topology == "rectangular" else np.sqrt(3) / 2)
    shared = {tuple(corner) for corner in corners[0].round(6)} & {tuple(corner) for corner in corners[4].round(6)}
    assert apart[0, 4] == pytest.approx(1)
    assert len(shared) == 2, "cells beside each other share an edge"
    left, right, top, bottom = extent(grid)
    assert (left, top) == (pytest.approx(-0.5), pytest.approx(corners[..., 1].min()))
    assert right > left
    assert bottom > top


@pytest.mark.parametrize(
    ("classes", "letters"),
    [
        (("negative", "positive"), ["N", "P"]),
        (("entailment", "neutral", "contradiction"), ["E", "N", "C"]),
        (("unacceptable", "unclear"), ["A", "B"]),
        (("0", "1"), ["A", "B"]),
        ([f"topic {i}" for i in range(30)], [str(i) for i in range(30)]),
    ],
)
def test_classes_have_signs_that_differ(classes: tuple[str, ...], letters: list[str]) -> None:
    assert class_letters(classes) == letters


def test_colours_fade_with_reliability_and_letters_can_be_read(records: list[MapRecord]) -> None:
    shares = np.array([0.5, 0.75, 1.0])
    strong = strength(shares, classes=2)
    assert strong[2] == 1
    assert np.all(np.diff(strong) > 0)
    assert strong[0] > 0.1, "a cell with examples is never as white as an empty one"
    colours = faded(class_colours(2)[[0, 0, 0]], strong)
    assert colours[2] == pytest.approx(class_colours(2)[0])
    assert ink_on(np.array([to_rgb("black"), to_rgb("white")])) == ["#ffffff", "#111111"]
    assert cell_colours(records[-1]).shape == (30, 3)
    assert [letter == "" for letter in letters_of(records[-1])] == (records[-1].labels == -1).tolist()


def test_there_is_one_plane_per_unit_with_the_removed_last(records: list[MapRecord]) -> None:
    planes = planes_of(records)
    assert [(plane.unit, plane.gone) for plane in planes] == [
        (0, None), (2, None), (3, None), (5, None), (7, None), (1, "epoch 2"), (4, "epoch 3"), (6, "epoch 3"),
    ]  # fmt: skip
    np.testing.assert_array_equal(planes[5].values, records[1].prototypes[:, 1])


@pytest.mark.parametrize(
    ("grid", "classes", "units"),
    [(Grid(1, 1), 2, 1), (Grid(3, 9, "hexagonal"), 3, 5), (Grid(20, 20), 14, 128), (Grid(40, 2), 30, 2)],
)
def test_any_map_can_be_drawn(tmp_path: Path, grid: Grid, classes: int, units: int) -> None:
    names = [f"<{i}> $x_{i}$" for i in range(classes)]
    maps = read_maps(made_run(tmp_path, grid=grid, classes=names, units=units, removed=(), passes=1))
    with drawing(ink="black", page="white"):
        drawn = [png(combined_map(maps[-1], "$a_b$"), dots=40), png(component_planes(maps, "x"), dots=40)]
    for picture in drawn:
        assert picture.startswith(b"\x89PNG")
        assert len(reduced(picture)) < len(picture)


def test_of_many_passes_some_are_shown_with_the_first_and_the_last(records: list[MapRecord]) -> None:
    many = [records[0], *records[1:2] * 40, records[2]]
    chosen = spread_out(many)
    assert len(chosen) == 12
    assert (chosen[0] is records[0], chosen[-1] is records[2]) == (True, True)
    assert spread_out(records) == records


def test_passes_go_by_epoch_where_there_is_one_per_epoch(records: list[MapRecord]) -> None:
    passes = [record.figures for record in records]
    assert [pass_label(one, passes) for one in passes] == ["epoch 1", "epoch 2", "epoch 3"]
    assert pass_label(passes[0], [passes[0], passes[0]]) == "step 5"


@pytest.mark.parametrize(("count", "expected"), [(7, "7"), (9999, "9999"), (12_345, "12k"), (3_400_000, "3M")])
def test_numbers_of_examples_are_short(count: int, expected: str) -> None:
    assert short_count(count) == expected
