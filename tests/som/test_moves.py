"""How prototypes move: one by one as the classic program does it, or a whole batch in closed form."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from fairtune import SOM


def blobs(seed: int, examples: int = 600, features: int = 6, classes: int = 4) -> tuple[Tensor, Tensor]:
    """Clouds around a few corners of a cube: activations as a hidden layer that separates classes has them."""
    random = torch.Generator().manual_seed(seed)
    corners = torch.tensor(list(itertools.product([0.15, 0.85], repeat=features)))
    centres = corners[torch.randperm(len(corners), generator=random)[:classes]]
    y = torch.randint(0, classes, (examples,), generator=random)
    return (centres[y] + 0.06 * torch.randn(examples, features, generator=random)).clamp(0, 1), y


def purity(som: SOM) -> float:
    return float(som.counts.amax(1).sum() / som.counts.sum())


@pytest.mark.parametrize("topology", ["rectangular", "hexagonal"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_both_ways_organise_the_same_stream_alike(seed: int, topology: str) -> None:
    x, y = blobs(seed)
    found = {}
    for update in ("batch", "sequential"):
        som = SOM(6, (6, 5), 4, topology=topology, update=update, seed=seed).fit(
            x, y, epochs=6, batch_size=32, seed=seed
        )
        found[update] = som.quantisation_error(x), purity(som)
    spread = float((x - x.mean(0)).norm(dim=1).mean())
    assert found["batch"][0] == pytest.approx(found["sequential"][0], rel=0.05)
    assert max(error for error, _ in found.values()) < 0.25 * spread
    assert min(pure for _, pure in found.values()) > 0.99


@pytest.mark.parametrize("topology", ["rectangular", "hexagonal"])
@pytest.mark.parametrize("radius", [0, 1, 2])
def test_a_batch_is_what_one_by_one_gives_with_the_same_winners(radius: int, topology: str) -> None:
    x = torch.rand(40, 7, generator=torch.Generator().manual_seed(radius), dtype=torch.float64)
    som = SOM(7, (5, 4), topology=topology, dtype=torch.float64)
    winners, places, steps = som.winners(x), som.prototypes.clone(), som.grid.distances()
    for example, winner in zip(x, winners.cells.tolist(), strict=True):
        for cell in range(som.grid.cells):
            if steps[winner, cell] <= radius:
                places[cell] += 0.2 / 2 ** steps[winner, cell] * (example - places[cell])
    returned = som.update(x, radius, 0.2, winners)
    torch.testing.assert_close(som.prototypes, places, rtol=0, atol=1e-14)
    assert (returned.cells == winners.cells).all()


@pytest.mark.parametrize("update", ["batch", "sequential"])
@pytest.mark.parametrize("rate", [0.05, 0.2, 1.0])
def test_many_examples_on_one_cell_do_not_overshoot(update: str, rate: float) -> None:
    som = SOM(3, 4, update=update, dtype=torch.float64)
    start = som.prototypes.clone()
    x = torch.full((500, 3), 0.9, dtype=torch.float64) + torch.linspace(0, 1e-3, 500, dtype=torch.float64)[:, None]
    som.update(x, 2, rate)
    low, high = torch.minimum(start, x.amin(0)), torch.maximum(start, x.amax(0))
    assert (som.prototypes >= low - 1e-12).all()
    assert (som.prototypes <= high + 1e-12).all()


@pytest.mark.parametrize("update", ["batch", "sequential"])
def test_an_example_on_its_prototype_moves_nothing(update: str) -> None:
    som = SOM(2, 3, update=update)
    before = som.prototypes.clone()
    som.update(before[4:5] + torch.tensor([0.0099, 0.0]), 2, 0.2)  # squared distance below 1e-4
    assert (som.prototypes == before).all()
    som.update(before[4:5] + torch.tensor([0.0101, 0.0]), 2, 0.2)
    assert (som.prototypes[4] != before[4]).any()


@pytest.mark.parametrize("update", ["batch", "sequential"])
def test_winners_are_the_first_and_partial_winners_the_last_on_ties(update: str) -> None:
    som = SOM(3, (4, 3), 2, update=update)
    som.prototypes.fill_(0.5)
    som.labels.copy_(torch.tensor([0, 1, 1, 0, 0, 1, -1, 0, 1, 1, 0, -1]))
    x = torch.rand(5, 3)
    winners, partial = som.nearest(x, torch.tensor([0, 1, 0, 1, 1]))
    assert winners.cells.tolist() == [0] * 5
    assert partial.cells.tolist() == [10, 9, 10, 9, 9]
    assert som.winners(x).cells.tolist() == [0] * 5
    assert som.partial_winners(x, torch.tensor([0, 1, 0, 1, 1])).cells.tolist() == [10, 9, 10, 9, 9]


def test_far_from_the_origin_winners_are_still_exact() -> None:
    som = SOM(8, 6)
    x = torch.rand(300, 8) + 5000
    som.fit(x, epochs=2)
    exact = torch.cdist(x.double(), som.prototypes.double()).square()
    chosen = exact.gather(1, som.winners(x).cells[:, None]).squeeze(1)
    assert (chosen <= exact.amin(1) + 1e-2).all()  # float32 holds these numbers to 5e-4 only
