"""Distances between examples and prototypes, and the nearest cells by them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

ELEMENTS_AT_ONCE = 1 << 22
"""How many differences the exact way holds in memory."""


class Winners(NamedTuple):
    """The nearest cell of each example (-1: there is none) and its squared Euclidean distance (then infinite)."""

    cells: Tensor
    distances: Tensor


def squared_distances(x: Tensor, prototypes: Tensor) -> Tensor:
    """[examples, cells], from the differences themselves."""
    at_once = max(1, ELEMENTS_AT_ONCE // prototypes.numel())
    return torch.cat([(part[:, None] - prototypes).square().sum(-1) for part in torch.split(x, at_once)])


def relative_squared_distances(x: Tensor, prototypes: Tensor) -> Tensor:
    """[examples, cells], by one matrix product: squared distances less a number that is the same for all cells of an example."""
    centre = prototypes.mean(0)  # far from the origin the squares would drown the differences
    away = prototypes - centre
    return torch.addmm(torch.linalg.vector_norm(away, dim=1).square(), x - centre, away.t(), alpha=-2)


def last_nearest_labelled(distances: Tensor, labels: Tensor, classes: Tensor) -> Tensor:
    """The nearest among the cells with the example's class, the last on ties; -1 if no cell has it."""
    least, cells = distances.masked_fill(labels != classes[:, None], torch.inf).flip(1).min(1)
    return (distances.shape[1] - 1 - cells).masked_fill(torch.isinf(least), -1)


def winners_of(cells: Tensor, x: Tensor, prototypes: Tensor) -> Winners:
    """The cells with their squared distances, from the differences themselves."""
    squares = (x - prototypes[cells]).square().sum(1)  # cell -1 reads the last prototype; its distance is not used
    return Winners(cells, squares.masked_fill(cells < 0, torch.inf))


def has_topographic_error(distances: Tensor, steps: Tensor) -> Tensor:
    """Which examples have two nearest cells that are more than one step apart on the grid."""
    first = distances.argmin(1)
    if distances.shape[1] == 1:
        return torch.zeros_like(first, dtype=torch.bool)
    second = distances.scatter(1, first[:, None], torch.inf).argmin(1)
    return steps[first, second] > 1
