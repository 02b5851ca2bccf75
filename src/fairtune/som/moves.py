"""How the prototypes move towards examples: one by one, or a whole batch in closed form."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import threshold

from fairtune.som.distances import Winners

STILL = 1e-4
"""An example moves nothing if its winner's squared distance is not larger than this."""


def move_batch(prototypes: Tensor, halves: Tensor, x: Tensor, winners: Winners, radius: int, rate: float) -> None:
    """What moving to the examples one after the other gives, the winners taken as they are.

    Each cell ends at a weighted mean of where it was and the examples, so that it cannot overshoot however many fall on it.

    Args:
        halves: 1 halved as often as two cells are steps apart on the grid, [cells, cells].
    """
    rates = rate * (winners.distances > STILL).to(x.dtype)
    near = halves.index_select(0, winners.cells.flip(0))  # [examples, cells], the last example first
    within = threshold(near, 0.75 * 0.5**radius, 0.0)  # one step beyond the radius is half of 0.5**radius
    gains = within * rates.flip(0)[:, None]
    kept = (1 - gains).cumprod(0)  # what is left of a cell's place after this example and all later ones
    gains[1:] *= kept[:-1]
    torch.addmm(prototypes * kept[-1][:, None], gains.t(), x.flip(0), out=prototypes)


def move_one_by_one(prototypes: Tensor, steps: NDArray[np.int64], x: Tensor, radius: int, rate: float) -> Winners:
    """Each example finds its winner on the map as the examples before it left it, and moves its surroundings.

    Args:
        steps: distances between cells on the grid, [cells, cells].
    """
    places = prototypes.cpu().numpy()  # shared with a map on the CPU; an example costs microseconds in numpy
    examples = x.cpu().numpy()
    cells = np.empty(len(examples), dtype=np.int64)
    distances = np.empty(len(examples), dtype=places.dtype)
    for i, example in enumerate(examples):
        away = example - places
        squares = np.einsum("cf,cf->c", away, away)
        cells[i] = winner = squares.argmin()
        distances[i] = squares[winner]
        if distances[i] > STILL:
            near = np.flatnonzero(steps[winner] <= radius)
            gains = rate / np.exp2(steps[winner, near])
            places[near] += gains.astype(places.dtype)[:, None] * away[near]
    if prototypes.device.type != "cpu":
        prototypes.copy_(torch.from_numpy(places))
    return Winners(torch.from_numpy(cells).to(x.device), torch.from_numpy(distances).to(x.device))
