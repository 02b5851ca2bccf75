"""Lengths in tokens: golden numbers, the rule of 95 % to the example, costs that follow from the batches, and the cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtune.core.errors import ModelError
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import tokenizer_folder
from fairtune.tasks.card.lengths import (
    BATCH_SIZE,
    COVERAGE,
    Counts,
    Lengths,
    auto_length,
    measure_lengths,
    padded_tokens,
    token_counts,
)
from fairtune.tasks.task import Split, Task
from fairtune.tasks.tokens.encoded_splits import training_batches


def words(count: int) -> tuple[str, ...]:
    return (" ".join(["film"] * count),)


def split(*counts: int, name: str = "train") -> Split:
    return Split.of([f"{name}-{i}" for i in range(len(counts))], [words(n) for n in counts], np.arange(len(counts)) % 2)


def measured(task: Task, folder: Path, coverage: float = COVERAGE) -> Lengths:
    model = find_model(str(folder))
    return measure_lengths(task, model.name, model.positions, tokenizer_folder(folder), coverage)


def count_of(lengths: np.ndarray) -> Counts:
    return Counts(np.sort(lengths), len(lengths))


def make_task(train: Split) -> Task:
    heldout = {name: split(1, 2, 3, 98, name=name) for name in ("validation", "test")}
    return Task("made", "accuracy", ("n", "p"), {"train": train, **heldout}, "memory")


@pytest.fixture
def task() -> Task:
    """Twenty training examples of 1 to 19 words and one of 200; the tiny tokenizer adds two tokens."""
    return make_task(split(*range(1, 20), 200))


def test_golden_numbers(task: Task, tiny_model: Path) -> None:
    found = measured(task, tiny_model).as_json()
    assert found["train"] == {
        "n": 20,
        "rows": 20,
        "sampled": False,
        "percentiles": {"50": 12, "75": 17, "90": 20, "95": 21, "99": 202},
        "longest": 202,
        "mean": 21.5,
    }
    assert found["validation_and_test"]["n"] == 8
    assert found["validation_and_test"]["percentiles"]["50"] == 4
    assert (found["covering"], found["auto"], found["positions"]) == (21, 21, 128)
    assert [choice["max_length"] for choice in found["choices"]] == [21, 64, 96, 128]
    assert found["beyond_the_model"] == [256, 512]
    first, second = found["choices"][:2]
    assert (first["truncated"], first["heldout_truncated"]) == (1 / 20, 2 / 8)
    assert first["lost"] == (202 - 21) / 430
    assert first["mean_tokens"] == (430 - 181) / 20
    assert second["lost"] == (202 - 64) / 430
    assert json.loads(json.dumps(found)) == found


def test_costs_follow_from_the_batches(task: Task, tiny_model: Path) -> None:
    """All twenty are one batch, padded to its longest: 128 tokens each at the choice that costs 1."""
    assert [choice.cost for choice in measured(task, tiny_model).choices] == [21 / 128, 0.5, 0.75, 1.0]
    lengths = np.random.default_rng(3).integers(5, 120, 5000)
    cut = np.minimum(np.sort(lengths), 64)
    batches = training_batches(cut, BATCH_SIZE, 0, 0)
    assert padded_tokens(count_of(lengths), 64) == sum(len(batch) * cut[batch].max() for batch in batches)


@pytest.mark.parametrize("seed", range(10))
def test_the_smallest_length_that_covers_is_exact(seed: int) -> None:
    """Against numpy, and against the words of the promise."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, generator.integers(2, 400), generator.integers(1, 500))
    counts = count_of(lengths)
    for share in (0.5, 0.9, 0.95, 0.99, 1.0, 1 / len(lengths), float(generator.uniform(0.01, 1))):
        found = counts.covering(share)
        assert found == np.quantile(lengths, share, method="inverted_cdf")
        assert np.mean(lengths <= found) >= share
        assert np.mean(lengths <= found - 1) < share
    for length in (1, 10, 64, 1000):
        assert counts.cut(length) == np.mean(lengths > length)
        assert counts.truncated(length).sum() == np.minimum(lengths, length).sum()
        assert counts.lost(length) == pytest.approx(1 - np.minimum(lengths, length).sum() / lengths.sum())


@pytest.mark.parametrize(
    ("lengths", "positions", "auto"),
    [([3, 4, 5], None, 8), ([3, 4, 5], 6, 6), ([100] * 30, 64, 64), ([100] * 30, 512, 100), ([9] * 99 + [900], 512, 9)],
)
def test_auto_is_at_least_8_and_at_most_what_the_model_takes(
    lengths: list[int], positions: int | None, auto: int
) -> None:
    assert auto_length(count_of(np.array(lengths)), positions) == auto


def test_a_large_split_is_sampled_and_says_so(tiny_model: Path) -> None:
    many = split(*(1 + i % 9 for i in range(900)))
    counts = token_counts([many], tokenizer_folder(tiny_model), most=100)
    assert (counts.n, counts.rows, counts.sampled) == (100, 900, True)
    assert set(counts.lengths) <= set(range(3, 12))
    again = token_counts([split(*(1 + i % 9 for i in range(900)))], tokenizer_folder(tiny_model), most=100)
    assert again.lengths.tolist() == counts.lengths.tolist()


def test_counted_once_for_each_tokenizer_and_split(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    from fairtune.tasks.card import lengths as module

    real = module.tokenize

    def counting(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return real(*args, **kwargs)

    monkeypatch.setattr(module, "tokenize", counting)
    first, other = split(4, 5, 6, name="once"), split(4, 5, 7, name="once")
    assert token_counts([first], tokenizer_folder(tiny_model)).lengths.tolist() == [6, 7, 8]
    assert token_counts([split(4, 5, 6, name="once")], tokenizer_folder(tiny_model)).lengths.tolist() == [6, 7, 8]
    assert len(calls) == 1, "the second time it is read"
    assert token_counts([other], tokenizer_folder(tiny_model)).lengths.tolist() == [6, 7, 9]
    assert len(calls) == 2
    for file in tiny_model.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    token_counts([first], tokenizer_folder(tmp_path))
    assert len(calls) == 2, "the same tokenizer in another place"
    config = json.loads((tmp_path / "tokenizer.json").read_text())
    config["post_processor"] = None
    (tmp_path / "tokenizer.json").write_text(json.dumps(config))
    from fairtune.models.tokenizers import load_tokenizer

    load_tokenizer.cache_clear()
    assert token_counts([first], tokenizer_folder(tmp_path)).lengths.tolist() == [4, 5, 6]
    assert len(calls) == 3, "another tokenizer"


def test_a_model_without_a_tokenizer_is_refused(task: Task, tiny_model: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((tiny_model / name).read_bytes())
    with pytest.raises(ModelError, match="tokenizer"):
        measured(task, tmp_path)


def test_empty_texts_are_counted(tiny_model: Path) -> None:
    blank = Split.of(["a", "b"], [("",), ("good",)], np.array([0, 1]))
    assert token_counts([blank], tokenizer_folder(tiny_model)).lengths.tolist() == [2, 3]
