"""Fixed samples, samples of few labels and fixed halves: of the examples and the seed alone, in the order of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtune.core.errors import DataError
from fairtune.settings.few_labels import FewLabels
from fairtune.tasks import load_task
from fairtune.tasks.splits import class_sample, fixed_halves, fixed_sample, require_per_class
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


def make_uneven(n: int = 300, classes: int = 3) -> Split:
    labels = np.arange(n) % 5 % classes  # not equally many
    return Split.of(tuple(f"train-{i}" for i in range(n)), tuple((f"text {i}",) for i in range(n)), labels)


@pytest.mark.parametrize("seed", [None, 0, 7])
@pytest.mark.parametrize("per_class", [1, 8, 64])
def test_a_sample_has_exactly_so_many_of_each_class(per_class: int, seed: int | None) -> None:
    sample = class_sample(make_uneven(classes=2), per_class, seed)
    assert np.bincount(sample.labels).tolist() == [per_class] * 2
    assert len(set(sample.ids)) == 2 * per_class
    assert list(sample.ids) == sorted(sample.ids, key=lambda name: int(name[6:])), "in the order of the data"


def test_each_seed_draws_its_own_and_always_the_same() -> None:
    split = make_uneven()
    drawn = {seed: set(class_sample(split, 8, seed).ids) for seed in (None, *range(20))}
    assert len({frozenset(ids) for ids in drawn.values()}) == 21
    assert class_sample(split, 8, 3).ids == class_sample(split, 8, 3).ids
    assert class_sample(split, 1, 1).ids == ("train-4", "train-230", "train-232"), "on every machine"


def test_fewer_are_among_more_of_the_same_seed() -> None:
    split = make_uneven()
    sizes = [set(class_sample(split, size, 5).ids) for size in (1, 2, 8, 20)]
    assert sizes[0] < sizes[1] < sizes[2] < sizes[3]


def test_a_sample_does_not_depend_on_the_order_of_the_rows() -> None:
    split = make_uneven()
    mixed = split.take(np.random.default_rng(0).permutation(len(split)))
    assert set(class_sample(split, 8, 2).ids) == set(class_sample(mixed, 8, 2).ids)


def test_no_text_is_taken_twice_before_all_are_taken_once() -> None:
    texts = [("alike",)] * 20 + [(f"text {i}",) for i in range(10)]
    split = Split.of([f"train-{i}" for i in range(30)], texts, np.zeros(30, np.int64))
    for seed in range(10):
        assert len({text for (text,) in class_sample(split, 11, seed).texts}) == 11
    assert len(class_sample(split, 30, 0)) == 30


def test_a_fixed_sample_of_few_labels_is_drawn_without_a_seed() -> None:
    split = make_uneven()
    assert fixed_sample(split, FewLabels(per_class=4)).ids == class_sample(split, 4).ids
    assert fixed_sample(split, FewLabels(per_class=4, resample="seed"), 9).ids == class_sample(split, 4, 9).ids


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([9, 3, 9], "class 'b' has 3 training examples; use 3 or less"),
        ([1, 3, 9], "class 'a' has 1 training example, and 1 other class has too few; use 1 or less"),
    ],
)
def test_more_than_there_are_is_refused_by_the_name_of_the_class(counts: list[int], words: str) -> None:
    labels = np.repeat(np.arange(3), counts)
    split = Split.of([str(i) for i in range(len(labels))], [(f"t{i}",) for i in range(len(labels))], labels)
    with pytest.raises(DataError) as refused:
        require_per_class(split, ("a", "b", "c"), 8, "train.examples")
    assert f"train.examples: per_class is 8, but {words}" in str(refused.value)
    require_per_class(split, ("a", "b", "c"), min(counts), "train.examples")


def test_samples_that_seeds_draw_do_not_fill_the_cache(
    tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairtune.models.tokenizers import load_tokenizer
    from fairtune.tasks.tokens.encoded_splits import encode_task

    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path))
    task, words = load_task(tiny_task.as_study()), load_tokenizer(tiny_model)
    few = FewLabels(per_class=3, resample="seed")
    found = [encode_task(task, words, 11, {"train": few}, seed=seed)["train"] for seed in range(4)]
    assert [one.ids for one in found] == [fixed_sample(task.splits["train"], few, seed).ids for seed in range(4)]
    kept = [entry for entry in (tmp_path / "tokens").iterdir() if entry.is_dir()]
    assert len(kept) == 2, "validation and test alone"
    shared = encode_task(task, words, 11, {"train": FewLabels(per_class=3)})["train"]
    assert np.bincount(shared.labels).tolist() == [3, 3]
