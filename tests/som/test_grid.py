"""Where cells are: numbers, distances and neighbours, with x and y never swapped."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fairtune.core.errors import ModelError
from fairtune.core.grid import Grid
from fairtune.som.schedules import radius_at, rate_at


def test_cells_are_numbered_column_by_column() -> None:
    grid = Grid(4, 2)
    assert grid.cells == 8
    assert grid.positions().tolist() == [[x, y] for x in range(4) for y in range(2)]


@pytest.mark.parametrize("topology", ["rectangular", "hexagonal"])
@pytest.mark.parametrize("size", [(1, 1), (1, 5), (5, 1), (6, 4), (5, 7)])
def test_distances_are_the_least_steps_over_neighbours(topology: str, size: tuple[int, int]) -> None:
    grid = Grid.of(size, topology)
    steps = grid.distances()
    assert (steps == steps.T).all()
    assert (np.diag(steps) == 0).all()
    touching, reached = (grid.distances() == 1), np.eye(grid.cells, dtype=bool)
    for distance in range(int(steps.max()) + 1):
        assert ((steps <= distance) == reached).all()
        reached = reached | (reached.astype(int) @ touching.astype(int) > 0)


def test_hexagonal_neighbours_are_the_cells_whose_centres_are_one_apart() -> None:
    grid = Grid(6, 5, "hexagonal")
    centres = grid.positions()
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)
    assert ((grid.distances() == 1) == np.isclose(apart, 1)).all()
    assert (grid.distances() == 1)[2 * 5 + 2].sum() == 6
    around = np.flatnonzero((grid.distances() == 1)[1 * 5 + 1])  # row 1 is shifted to the right
    assert {divmod(int(cell), 5) for cell in around} == {(0, 1), (2, 1), (1, 0), (2, 0), (1, 2), (2, 2)}


def test_radius_and_rate_go_down_as_published() -> None:
    left = [(8 - epoch) / 8 for epoch in range(1, 9)]
    assert [radius_at(share, (1, 0)) for share in left] == [1, 0, 0, 0, 0, 0, 0, 0]
    assert [radius_at((10 - epoch) / 10, (2, 0)) for epoch in range(1, 11)] == [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert [radius_at((100 - epoch) / 100, (2, 0)) for epoch in (1, 6, 7, 29, 30, 100)] == [2, 2, 1, 1, 0, 0]
    assert radius_at(1.0, (5, 2)) == 5
    assert radius_at(0.0, (5, 2)) == 2
    assert rate_at(left[0], (0.2, 0.05)) == pytest.approx(0.18125)
    assert rate_at(0.0, (0.2, 0.05)) == 0.05


@pytest.mark.parametrize("grid", [0, -1, (3, 0), (0, 3), 2.5, True, (3,), (1, 2, 3), "10"])
def test_a_grid_without_cells_is_refused(grid: object) -> None:
    with pytest.raises(ModelError, match="grid"):
        Grid.of(grid)  # type: ignore[arg-type]


def test_grid_and_schedules_import_no_torch() -> None:
    code = "import sys, fairtune.core.grid, fairtune.som.schedules; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
