"""How well a map fits its examples, and how far its cells are from their neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fairtune.core.errors import DataError
from fairtune.som.checks import checked_rows
from fairtune.som.distances import first_nearest, in_parts

if TYPE_CHECKING:
    from fairtune.som.som import SOM


def quantisation_error(som: SOM, x: Tensor) -> float:
    """Mean Euclidean distance of an example to its winner."""
    rows = _some(som, x)
    total = 0.0
    for part in in_parts(rows):
        total += float(som.winners(part).distances.double().sqrt().sum())
    return total / len(rows)


@torch.no_grad()
def topographic_error(som: SOM, x: Tensor) -> float:
    """Share of the examples whose two nearest cells are not neighbours."""
    rows = _some(som, x)
    total = 0
    for part in in_parts(rows):
        total += int(torn(som.far(part), som.steps).sum())
    return total / len(rows)


def torn(far: Tensor, steps: Tensor) -> Tensor:
    """Which examples have two nearest cells that are not neighbours.

    Args:
        far: how far the examples are from all cells, [examples, cells].
        steps: distances between cells on the grid, [cells, cells].
    """
    first = first_nearest(far)
    if far.shape[1] == 1:
        return torch.zeros_like(first, dtype=torch.bool)
    second = first_nearest(far.scatter(1, first[:, None], torch.inf))
    return steps[first, second] > 1


def u_matrix(prototypes: Tensor, steps: Tensor) -> Tensor:
    """Mean Euclidean distance of each cell's prototype to those of its direct neighbours, [cells]."""
    touching = steps == 1
    one, other = touching.nonzero(as_tuple=True)
    away = (prototypes[one] - prototypes[other]).square().sum(1).sqrt()
    return prototypes.new_zeros(len(prototypes)).index_add_(0, one, away) / touching.sum(1).clamp(min=1)


def _some(som: SOM, x: Tensor) -> Tensor:
    rows = checked_rows(x, som.prototypes)
    if not len(rows):
        raise DataError("map: a mean over no examples says nothing; give at least one")
    return rows
