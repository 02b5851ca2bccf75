"""Batches: little padding, a fair order, every example once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fairtune.tasks.tokens.encoded_splits import (
    Encoded,
    collate,
    evaluation_batches,
    training_batches,
)


def realistic_lengths(n: int = 8000, seed: int = 3) -> np.ndarray:
    """Sentence lengths as reviews have them: lognormal, cut at 128 tokens."""
    return np.clip(np.random.default_rng(seed).lognormal(3.0, 0.6, n), 3, 128).astype(np.int64)


def make_encoded(lengths: list[int], pairs: bool = False, padding: int = 9) -> Encoded:
    """Example i consists of tokens 100 i, 100 i + 1, ..."""
    tokens = np.concatenate([100 * i + np.arange(n) for i, n in enumerate(lengths)]).astype(np.uint32)
    types = np.concatenate([np.arange(n) >= n // 2 for n in lengths]).astype(np.int8)
    return Encoded(
        tokens=tokens,
        types=types if pairs else None,
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=np.arange(len(lengths), dtype=np.int64) % 3,
        names=pa.array([f"train-{i}" for i in range(len(lengths))]),
        padding=padding,
    )


@pytest.mark.parametrize(("n", "batch_size"), [(1, 32), (31, 32), (32, 32), (33, 32), (1000, 7), (8000, 32)])
def test_an_epoch_holds_every_example_exactly_once(n: int, batch_size: int) -> None:
    batches = training_batches(realistic_lengths(n), batch_size, seed=1, epoch=0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(n))
    sizes = sorted(len(b) for b in batches)
    assert len(batches) == -(-n // batch_size)
    assert all(size == batch_size for size in sizes[1:]), "at most one batch is short"


def test_a_seed_gives_one_order_and_epochs_differ() -> None:
    lengths = realistic_lengths(500)

    def epoch(seed: int, number: int) -> list[list[int]]:
        return [b.tolist() for b in training_batches(lengths, 16, seed, number)]

    assert epoch(1, 0) == epoch(1, 0)
    assert epoch(1, 0) != epoch(2, 0)
    assert epoch(1, 0) != epoch(1, 1)
    together = {tuple(sorted(b)) for b in epoch(1, 0)} & {tuple(sorted(b)) for b in epoch(1, 1)}
    assert len(together) < 3, "another epoch mixes other examples into a batch"


@pytest.mark.parametrize("seed", range(4))
def test_padding_is_small_and_adjacent_batches_do_not_resemble_each_other(seed: int) -> None:
    lengths = realistic_lengths()
    batches = training_batches(lengths, 32, seed, 0)
    padded = sum(len(b) * lengths[b].max() for b in batches)
    assert 1 - lengths.sum() / padded < 0.02
    longest = np.array([lengths[b].max() for b in batches], dtype=float)
    assert abs(np.corrcoef(longest[:-1], longest[1:])[0, 1]) < 0.2


@pytest.mark.parametrize("tokens", [1, 128, 1000, 16384])
def test_evaluation_covers_everything_once_within_the_token_budget(tokens: int) -> None:
    lengths = realistic_lengths(3000)
    batches = evaluation_batches(lengths, tokens)
    assert sorted(np.concatenate(batches).tolist()) == list(range(3000))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= tokens
    assert [lengths[b].max() for b in batches] == sorted((lengths[b].max() for b in batches), reverse=True)


def test_collating_pads_and_masks() -> None:
    data = make_encoded([3, 1, 5])
    arrays = collate(data, np.array([1, 0]))
    assert arrays["input_ids"].tolist() == [[100, 9, 9], [0, 1, 2]]
    assert arrays["attention_mask"].tolist() == [[1, 0, 0], [1, 1, 1]]
    assert arrays["labels"].tolist() == [1, 0]
    assert "token_type_ids" not in arrays
    assert all(array.dtype == np.int64 for array in arrays.values())


def test_collating_pairs_gives_token_types_and_pads_them_with_zero() -> None:
    arrays = collate(make_encoded([4, 2], pairs=True), np.array([0, 1]))
    assert arrays["token_type_ids"].tolist() == [[0, 0, 1, 1], [0, 1, 0, 0]]
    assert arrays["input_ids"].tolist() == [[0, 1, 2, 3], [100, 101, 9, 9]]


def test_taking_rows_keeps_tokens_labels_and_ids_together() -> None:
    data = make_encoded([3, 1, 5, 2], pairs=True)
    some = data.take(np.array([2, 0]))
    assert some.ids == ("train-2", "train-0")
    assert some.labels.tolist() == [2, 0]
    assert collate(some, np.array([0, 1]))["input_ids"].tolist() == [[200, 201, 202, 203, 204], [0, 1, 2, 9, 9]]
    assert some.types is not None
    assert some.types.tolist() == [0, 0, 1, 1, 1, 0, 1, 1]


def test_few_examples_of_mixed_lengths_are_cut_where_it_costs_least() -> None:
    lengths = np.array([200, 60, 58, 57, 20, 20, 19, 19, 18, 5, 5])
    batches = evaluation_batches(lengths, 1024)
    assert [sorted(lengths[b].tolist(), reverse=True) for b in batches] == [
        [200],
        [60, 58, 57],
        [20, 20, 19, 19, 18, 5, 5],
    ]
