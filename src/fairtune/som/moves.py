"""How the prototypes move towards examples: one by one, or a whole batch in closed form."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fairtune.som.distances import Winners

STILL = 1e-4
"""An example moves nothing if its winner's squared distance is not larger than this."""


def move_batch(prototypes: Tensor, steps: Tensor, x: Tensor, winners: Winners, radius: int, rate: float) -> None:
    """What moving to the examples one after the other gives, the winners taken as they are.

    Each cell ends at a weighted mean of where it was and the examples, so that it cannot overshoot however many fall on it.

    Args:
        steps: distances between cells on the grid, [cells, cells].
    """
    away = steps[winners.cells]
    gains = torch.where(away <= radius, rate * torch.exp2(-away.to(x.dtype)), 0.0)
    gains = gains.masked_fill((winners.distances <= STILL)[:, None], 0.0).t()  # [cells, examples]
    kept = (
        (1 - gains).flip(1).cumprod(1).flip(1)
    )  # what is left of a cell's place after this example and all later ones
    later = torch.cat([kept[:, 1:], torch.ones_like(kept[:, :1])], dim=1)
    torch.addmm(prototypes * kept[:, :1], gains * later, x, out=prototypes)


def move_one_by_one(prototypes: Tensor, steps: NDArray[np.int64], x: Tensor, radius: int, rate: float) -> Winners:
    """Each example finds its winner on the map as the examples before it left it, and moves its surroundings.

    Args:
        steps: distances between cells on the grid, [cells, cells].
    """
    halvings = np.arange(int(steps.max()) + 1)
    gain = np.where(halvings <= radius, rate / 2.0**halvings, 0.0)
    places = prototypes.cpu().numpy()  # shared with a map on the CPU; an example costs microseconds in numpy
    examples = x.cpu().numpy()
    cells = np.empty(len(examples), dtype=np.int64)
    distances = np.empty(len(examples), dtype=places.dtype)
    for i, example in enumerate(examples):
        away = example - places
        squares = np.einsum("cf,cf->c", away, away)
        winner = int(squares.argmin())
        cells[i], distances[i] = winner, squares[winner]
        if distances[i] > STILL:
            near = np.flatnonzero(steps[winner] <= radius)
            places[near] += gain[steps[winner, near], None].astype(places.dtype) * away[near]
    prototypes.copy_(torch.from_numpy(places))
    return Winners(torch.from_numpy(cells).to(x.device), torch.from_numpy(distances).to(x.device))
