"""Training a map on its own, on examples that are all there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from fairtune.core.errors import DataError, ModelError, one_of
from fairtune.core.grid import Grid
from fairtune.som.checks import check_step, checked_classes, checked_rows
from fairtune.som.schedules import radius_at, rate_at

if TYPE_CHECKING:
    from fairtune.som.som import SOM

Start = Literal["examples", "present"]
STARTS: tuple[Start, ...] = ("examples", "present")


def fit_map(
    som: SOM,
    x: Tensor,
    labels: Tensor | None,
    epochs: int,
    batch_size: int,
    radius: tuple[int, int],
    rate: tuple[float, float],
    start: Start,
    seed: int,
) -> SOM:
    """What `SOM.fit` does."""
    rows = checked_rows(x, som.prototypes)
    if labels is not None:
        labels = checked_classes(labels, len(rows), som.classes, rows.device)
    _check_data(som.grid, rows, labels)
    for end in (0, 1):
        check_step(radius[end], rate[end])
    if epochs < 1 or batch_size < 1:
        raise ModelError(f"fit: epochs {epochs} and batch_size {batch_size} must be at least 1")
    if start not in STARTS:
        raise ModelError(f"start: '{start}' is not known; allowed are {one_of(STARTS)}")
    generator = torch.Generator().manual_seed(seed)
    if start == "examples":
        chosen = torch.randperm(len(rows), generator=generator)[: som.grid.cells]
        som.prototypes.copy_(rows[chosen.to(rows.device)])
    for epoch in range(1, epochs + 1):
        left = (epochs - epoch) / epochs
        order = torch.randperm(len(rows), generator=generator).to(rows.device)
        for batch in torch.split(rows[order], batch_size):
            som.move(batch, radius_at(left, radius), rate_at(left, rate))
    if labels is not None:
        som.label(rows, labels)
    return som


def _check_data(grid: Grid, rows: Tensor, labels: Tensor | None) -> None:
    if len(rows) < grid.cells:
        raise DataError(
            f"grid: {grid.columns} x {grid.rows} has {grid.cells} cells for {len(rows)} examples; "
            f"use a smaller grid or more examples"
        )
    if labels is not None and bool((labels == labels[0]).all()):
        raise DataError(f"map: all examples are of class {int(labels[0])}; labels need at least two classes")
