"""The fixed sample and the fixed halves: stratified, stable, and of the examples alone."""

from __future__ import annotations

import numpy as np
import pytest

from fairtune.tasks.splits import fixed_halves, fixed_sample
from fairtune.tasks.task import Split


def make_split(n: int = 1000, share: float = 0.2) -> Split:
    labels = (np.arange(n) % round(1 / share) == 0).astype(np.int64)
    return Split.of(tuple(f"train-{i}" for i in range(n)), tuple((f"text {i}",) for i in range(n)), labels)


@pytest.mark.parametrize("size", [2, 10, 50, 99, 500, 999])
def test_a_sample_keeps_the_shares_of_the_classes(size: int) -> None:
    sample = fixed_sample(make_split(), size)
    assert len(sample) == size
    assert len(set(sample.ids)) == size
    assert abs(sample.labels.sum() - 0.2 * size) <= 1


def test_a_larger_sample_holds_the_smaller_one() -> None:
    split = make_split()
    small, large = set(fixed_sample(split, 50).ids), set(fixed_sample(split, 200).ids)
    assert small < large


def test_a_sample_depends_on_the_examples_and_not_on_their_order() -> None:
    split = make_split()
    mixed = split.take(np.random.default_rng(0).permutation(len(split)))
    assert set(fixed_sample(split, 100).ids) == set(fixed_sample(mixed, 100).ids)
    assert fixed_sample(split, 100).ids == fixed_sample(split, 100).ids


def test_a_sample_keeps_the_order_of_the_data_and_texts_with_their_labels() -> None:
    split = make_split()
    sample = fixed_sample(split, 100)
    places = [int(i.removeprefix("train-")) for i in sample.ids]
    assert places == sorted(places)
    assert places != list(range(100)), "not simply the first ones"
    assert all(sample.texts[k] == split.texts[i] for k, i in enumerate(places))
    assert all(sample.labels[k] == split.labels[i] for k, i in enumerate(places))


@pytest.mark.parametrize("size", [None, 1000, 5000])
def test_no_size_or_a_size_too_large_is_everything(size: int | None) -> None:
    assert fixed_sample(make_split(), size).ids == make_split().ids


@pytest.mark.parametrize("n", [2, 3, 7, 100, 871, 1000])
@pytest.mark.parametrize("share", [0.2, 0.5, 1 / 3])
def test_halves_divide_every_class_evenly_and_lose_nothing(n: int, share: float) -> None:
    split = make_split(n, share)
    first, second = fixed_halves(split)
    assert abs(len(first) - len(second)) <= 1
    assert abs(int(first.labels.sum()) - int(second.labels.sum())) <= 1
    assert set(first.ids) | set(second.ids) == set(split.ids)
    assert not set(first.ids) & set(second.ids)


def test_halves_depend_on_the_examples_and_not_on_their_order() -> None:
    split = make_split(999)
    mixed = split.take(np.random.default_rng(0).permutation(len(split)))
    for one, other in zip(fixed_halves(split), fixed_halves(mixed), strict=True):
        assert set(one.ids) == set(other.ids)
    places = [int(i.removeprefix("train-")) for i in fixed_halves(split)[0].ids]
    assert places == sorted(places)
    assert places != list(range(len(places))), "not simply the first ones"


def test_a_sample_of_a_half_is_not_a_sample_of_the_whole() -> None:
    """The two draws are independent: else a sample of the whole would lie in one half."""
    split = make_split()
    inside = set(fixed_sample(split, 200).ids) & set(fixed_halves(split)[0].ids)
    assert 60 < len(inside) < 140
