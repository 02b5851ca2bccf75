"""Squared distances between examples and prototypes, and the nearest cells by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

ELEMENTS_AT_ONCE = 1 << 22
"""How many differences the exact way holds in memory."""


ROWS_AT_ONCE = 1024
"""How many examples a whole pass looks at together."""


class Winners(NamedTuple):
    """The nearest cell of each example (-1: there is none) and its squared Euclidean distance (then infinite)."""

    cells: Tensor
    distances: Tensor


def squared_distances(x: Tensor, prototypes: Tensor, exact: bool) -> Tensor:
    """[examples, cells].

    Args:
        exact: from the differences themselves; otherwise from one matrix product, right to the rounding of the squares.
    """
    if exact:
        at_once = max(1, ELEMENTS_AT_ONCE // max(1, prototypes.numel()))
        return torch.cat([(part[:, None] - prototypes).square().sum(-1) for part in torch.split(x, at_once)])
    centre = prototypes.mean(0)  # far from the origin the squares would drown the differences
    x, prototypes = x - centre, prototypes - centre
    squares = torch.addmm(prototypes.square().sum(1), x, prototypes.t(), alpha=-2)
    return squares.add_(x.square().sum(1, keepdim=True)).clamp_(min=0)


def first_nearest(squares: Tensor) -> Tensor:
    """The nearest cell of each example, the first on ties."""
    return squares.argmin(1)


def last_nearest_labelled(squares: Tensor, labels: Tensor, classes: Tensor) -> Tensor:
    """The nearest among the cells with the example's class, the last on ties; -1 if no cell has it."""
    others = labels != classes[:, None]
    masked = squares.masked_fill(others, torch.inf)
    cells = squares.shape[1] - 1 - masked.flip(1).argmin(1)
    return cells.masked_fill(others.all(1), -1)


def winners_of(cells: Tensor, x: Tensor, prototypes: Tensor) -> Winners:
    """The cells with their distances, from the differences themselves."""
    squares = (x - prototypes[cells]).square().sum(1)  # cell -1 reads the last prototype; its distance is not used
    return Winners(cells, squares.masked_fill(cells < 0, torch.inf))


def in_parts(rows: Tensor) -> Sequence[Tensor]:
    """The rows in parts that are looked at together."""
    return torch.split(rows, ROWS_AT_ONCE)
