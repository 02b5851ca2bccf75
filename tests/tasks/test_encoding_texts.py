"""Texts as tokens, with a real tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtune.core.stages import stoppable
from fairtune.models.tokenizers import load_tokenizer
from fairtune.tasks.task import Split, Task
from fairtune.tasks.tokens import encoded_splits
from fairtune.tasks.tokens.encoded_splits import encode, encode_task
from fairtune.tasks.tokens.tokenization import BATCH


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Path) -> Any:
    return load_tokenizer(tiny_model)


def make_split(texts: list[tuple[str, ...]]) -> Split:
    return Split.of(tuple(f"test-{i}" for i in range(len(texts))), tuple(texts), np.arange(len(texts)) % 2)


def tokens_of(data: Any, tokenizer: Any, row: int) -> str:
    return str(tokenizer.decode(data.tokens[data.starts[row] : data.starts[row + 1]]))


def test_each_example_keeps_its_own_words(tokenizer: Any) -> None:
    data = encode(make_split([("a good film",), ("the worst book was very dull",)]), tokenizer, 16)
    assert tokens_of(data, tokenizer, 0) == "[CLS] a good film [SEP]"
    assert tokens_of(data, tokenizer, 1) == "[CLS] the worst book was very dull [SEP]"
    assert data.lengths.tolist() == [5, 8]
    assert data.types is None
    assert (data.ids, data.labels.tolist(), data.padding) == (("test-0", "test-1"), [0, 1], 0)


def test_a_pair_has_token_types(tokenizer: Any) -> None:
    data = encode(make_split([("good film", "bad"), ("a", "the plot")]), tokenizer, 12)
    assert data.types is not None
    assert data.types.tolist() == [0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1]


def test_many_chunks_equal_one(tokenizer: Any) -> None:
    words = ["good", "bad", "film", "book", "plot"]
    texts = [(" ".join(words[: 1 + i % 5]),) for i in range(BATCH * 2 + 17)]
    calls: list[int] = []
    with stoppable(lambda: calls.append(1)):
        data = encode(make_split(texts), tokenizer, 16)
    assert len(data) == len(texts)
    assert len(calls) == 3, "a long job can be stopped between chunks"
    assert data.lengths.tolist() == [3 + i % 5 for i in range(len(texts))]
    assert tokens_of(data, tokenizer, BATCH + 3) == tokens_of(data, tokenizer, 3)


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("fresh_cache")
def test_another_length_or_sample_is_another_entry(tokenizer: Any) -> None:
    split = make_split([("a good film was good",), ("the worst book",), ("good",)])
    task = Task("t", "accuracy", ("n", "p"), {"train": split, "validation": split, "test": split}, "memory")
    assert encode_task(task, tokenizer, 16)["train"].lengths.tolist() == [7, 5, 3]
    assert encode_task(task, tokenizer, 4)["train"].lengths.tolist() == [4, 4, 3]
    sizes = [len(encode_task(task, tokenizer, 16, {"train": size})["train"]) for size in (1, 2)]
    assert sizes == [1, 2]


def pairs_task() -> Task:
    split = make_split([("a good film", "was good"), ("the worst book", "bad")])
    return Task("t", "accuracy", ("n", "p"), {"train": split, "validation": split, "test": split}, "memory")


def same(one: Any, other: Any) -> bool:
    arrays = (
        (one.tokens, other.tokens),
        (one.types, other.types),
        (one.starts, other.starts),
        (one.labels, other.labels),
    )
    return one.ids == other.ids and all(np.array_equal(a, b) for a, b in arrays)


def test_the_second_time_nothing_is_tokenised(
    tokenizer: Any, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = encode_task(pairs_task(), tokenizer, 16)
    assert len(list((fresh_cache / "tokens").glob("*/tokens.bin"))) == 1, "equal splits have one entry"

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("tokenised again")

    monkeypatch.setattr(encoded_splits, "tokenize", refuse)
    again = encode_task(pairs_task(), tokenizer, 16)
    assert all(same(first[name], again[name]) for name in first)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks the kernel what is mapped")
def test_tokens_are_the_caches_own_file_in_memory_which_workers_share(tokenizer: Any, fresh_cache: Path) -> None:
    data = encode_task(pairs_task(), tokenizer, 16)["train"]
    for array, name in ((data.tokens, "tokens.bin"), (data.types, "types.bin")):
        (file,) = (fresh_cache / "tokens").glob(f"*/{name}")
        assert array is not None
        place = array.__array_interface__["data"][0]
        mapped = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
        (found,) = [row for row in mapped if int(row[0].split("-")[0], 16) <= place < int(row[0].split("-")[1], 16)]
        assert found[-1] == str(file)


@pytest.mark.parametrize("name", ["tokens.bin", "types.bin", "examples.arrow"])
def test_damaged_tokens_are_made_again(tokenizer: Any, fresh_cache: Path, name: str) -> None:
    first = encode(pairs_task().splits["train"], tokenizer, 16)
    encode_task(pairs_task(), tokenizer, 16)
    (file,) = (fresh_cache / "tokens").glob(f"*/{name}")
    file.write_bytes(file.read_bytes()[:-8])
    assert same(encode_task(pairs_task(), tokenizer, 16)["train"], first)
