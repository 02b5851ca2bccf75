"""A map's state: saved and loaded, columns kept, dtypes; and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from fairtune import SOM
from fairtune.core.errors import DataError, FairtuneError


def test_the_start_is_drawn_around_one_half_by_the_seed() -> None:
    som = SOM(50, 10, seed=3)
    assert (som.prototypes == SOM(50, 10, seed=3).prototypes).all()
    assert (som.prototypes != SOM(50, 10, seed=4).prototypes).any()
    assert 0.2 <= float(som.prototypes.min()) < 0.21
    assert 0.79 < float(som.prototypes.max()) <= 0.8
    before = torch.get_rng_state()
    SOM(3, 3)
    assert (torch.get_rng_state() == before).all()  # the caller's random numbers are not used up


def test_the_state_comes_back() -> None:
    x, y = torch.rand(100, 6), torch.arange(100) % 3
    som = SOM(6, (4, 5), 3).fit(x, y, epochs=2)
    state = som.state_dict()
    assert set(state) == {"prototypes", "labels", "reliability", "counts"}
    other = SOM(6, (4, 5), 3, seed=9)
    other.load_state_dict(state)
    for name, value in state.items():
        assert (getattr(other, name) == value).all()
    assert (other.partial_winners(x, y).cells == som.partial_winners(x, y).cells).all()


def test_kept_columns_are_the_same_map_of_fewer_units() -> None:
    x, y = torch.rand(100, 6), torch.arange(100) % 2
    som = SOM(6, 4, 2).fit(x, y, epochs=2)
    before, labels = som.prototypes.clone(), som.labels.clone()
    som.keep(torch.tensor([5, 0, 2]))
    assert som.features == 3
    assert (som.prototypes == before[:, [5, 0, 2]]).all()
    assert (som.labels == labels).all()
    som.keep(torch.tensor([True, False, True]))
    assert (som.prototypes == before[:, [5, 2]]).all()
    som.update(x[:, [5, 2]], 1, 0.2)
    fresh = SOM(6, 4, 2)
    fresh.resize(2)
    fresh.load_state_dict(som.state_dict())
    assert (fresh.winners(x[:, [5, 2]]).cells == som.winners(x[:, [5, 2]]).cells).all()


def test_a_model_in_half_precision_keeps_its_map_exact() -> None:
    holder = torch.nn.Sequential(torch.nn.Linear(2, 2), SOM(4, 3, 2))
    before = holder[1].prototypes.clone()
    holder.to(torch.bfloat16).half()
    assert holder[0].weight.dtype == torch.float16
    assert holder[1].prototypes.dtype == holder[1].reliability.dtype == torch.float32
    assert (holder[1].prototypes == before).all()
    holder[1].update(torch.rand(5, 4, dtype=torch.float16), 1, 0.2)
    assert holder.double()[1].prototypes.dtype == torch.float64
    holder[1].update(torch.rand(5, 4), 1, 0.2)


NOT_FINITE = [float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize("update", ["batch", "sequential"])
def test_where_a_model_computes_in_half_precision_its_map_does_not(update: str) -> None:
    generator = torch.Generator().manual_seed(1)
    examples, classes = 0.5 + 0.01 * torch.randn(256, 32, generator=generator), torch.arange(256) % 2
    plain, mixed = (SOM(32, 8, classes=2, update=update) for _ in range(2))
    for som in (plain, mixed):
        som.prototypes.copy_(0.5 + 0.01 * torch.randn(64, 32, generator=torch.Generator().manual_seed(2)))
    plain.update(examples, 1, 0.2)
    found = plain.label(examples, classes)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed.update(examples, 1, 0.2)
        same = mixed.label(examples, classes)
    assert torch.equal(mixed.prototypes, plain.prototypes)
    assert torch.equal(mixed.counts, plain.counts)
    assert same.quantisation_error == found.quantisation_error


@pytest.mark.parametrize("bad", NOT_FINITE)
@pytest.mark.parametrize("update", ["batch", "sequential"])
def test_numbers_that_are_not_finite_are_refused_before_anything_changes(update: str, bad: float) -> None:
    som = SOM(4, 3, 2, update=update)
    som.label(torch.rand(20, 4), torch.arange(20) % 2)
    before = {name: value.clone() for name, value in som.state_dict().items()}
    x, y = torch.rand(20, 4), torch.arange(20) % 2
    x[7, 2] = bad
    tries: list[Callable[[], object]] = [
        lambda: som.update(x, 1, 0.2),
        lambda: som.winners(x),
        lambda: som.nearest(x, y),
        lambda: som.fit(x, y),
        lambda: som.label(x, y),
        lambda: som.labelling().add(x, y),
        lambda: som.hits(x),
        lambda: som.quantisation_error(x),
    ]
    for attempt in tries:
        with pytest.raises(DataError, match=r"1 of 20 examples hold NaN or infinite numbers .*example 7"):
            attempt()
    for name, value in before.items():
        assert (getattr(som, name) == value).all()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: SOM(4, 0), "grid: 0 x 0 has no cells"),
        (lambda: SOM(0, 3), "features: 0"),
        (lambda: SOM(4, 3, 1), "classes: 1 cannot be told apart"),
        (lambda: SOM(4, 3, update="online"), "update: 'online' is not known; allowed are batch, sequential"),
        (lambda: SOM(4, 3, topology="square"), "topology: 'square'"),
        (lambda: SOM(4, 3, dtype=torch.float16), "round its small steps away"),
        (lambda: SOM(4, 3).winners(torch.rand(5, 3)), r"shape \[5, 3\] do not fit; it takes \[examples, 4\]"),
        (lambda: SOM(4, 3).update(torch.rand(4), 1, 0.2), r"shape \[4\]"),
        (lambda: SOM(4, 3).update(torch.rand(5, 4), -1, 0.2), "radius: -1"),
        (lambda: SOM(4, 3).update(torch.rand(5, 4), 1, 1.5), "rate: 1.5 is outside 0 to 1"),
        (lambda: SOM(4, 3).fit(torch.rand(8, 4)), "3 x 3 has 9 cells for 8 examples"),
        (lambda: SOM(4, 2, 3).fit(torch.rand(9, 4), torch.full((9,), 2)), "all examples are of class 2"),
        (lambda: SOM(4, 2).fit(torch.rand(9, 4), start="pca"), "start: 'pca'"),
        (lambda: SOM(4, 2).fit(torch.rand(9, 4), torch.arange(9) % 2), "made without classes"),
        (lambda: SOM(4, 2).labelling(), "made without classes"),
        (lambda: SOM(4, 2, 2).label(torch.rand(3, 4), torch.tensor([0, 1, 2])), "class 2 is outside 0 to 1"),
        (lambda: SOM(4, 2, 2).label(torch.rand(3, 4), torch.tensor([0, -1, 1])), "class -1 is outside 0 to 1"),
        (lambda: SOM(4, 2, 2).label(torch.rand(3, 4), torch.tensor([0, 1])), "for each of the 3 examples"),
        (lambda: SOM(4, 2, 2).label(torch.rand(3, 4), torch.rand(3)), "give one whole number from 0 to 1"),
        (lambda: SOM(4, 2, 2).labelling().finish(), "without examples"),
        (lambda: SOM(4, 2).quantisation_error(torch.rand(0, 4)), "over no examples"),
        (lambda: SOM(4, 2).keep(torch.tensor([], dtype=torch.int64)), "keep at least one unit"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(make: Callable[[], object], match: str) -> None:
    with pytest.raises(FairtuneError, match=match):
        make()
