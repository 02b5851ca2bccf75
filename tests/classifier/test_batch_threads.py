"""Batches side by side: the same bits in the same order, whoever computes them."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2ForSequenceClassification

from fairtune.classifier.batch_threads import ENOUGH, compute_batches
from fairtune.classifier.predictor import Predictor
from fairtune.tasks.task import Texts
from fairtune.testing.toy import PLAIN, VOCABULARY, make_tokenizer

THREADS, MAX_LENGTH = 3, 24


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    yield
    assert torch.get_num_threads() == THREADS, "the caller's number of threads is left as it was"
    torch.set_num_threads(before)


def made_network(kind: str) -> Any:
    shared = {"vocab_size": len(VOCABULARY), "num_labels": 3, "pad_token_id": 0}
    torch.manual_seed(0)
    if kind == "gpt2":
        return GPT2ForSequenceClassification(GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=64, **shared))
    config = BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=64,
        **shared,
    )  # fmt: skip
    return BertForSequenceClassification(config)


def made_texts(count: int) -> list[Texts]:
    draw = random.Random(1)
    return [(" ".join(draw.choices(PLAIN, k=draw.randint(1, 40))),) for _ in range(count)]


def made_predictor(kind: str) -> Predictor:
    return Predictor(made_network(kind), make_tokenizer(), MAX_LENGTH, batch_tokens=64)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_gives_the_bits_that_one_thread_gives(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, predictor = made_texts(120), made_predictor(kind)
    names: set[str] = set()
    plain = Predictor._batch

    def noted(self: Predictor, *given: Any) -> Any:
        assert torch.get_num_threads() == 1
        names.add(threading.current_thread().name)
        return plain(self, *given)

    monkeypatch.setattr(Predictor, "_batch", noted)
    beside = predictor.logits(texts)
    assert all(name.startswith("fairtune-batch") for name in names)
    assert len(names) > 1
    torch.set_num_threads(1)
    names.clear()
    np.testing.assert_array_equal(predictor.logits(texts), beside)
    assert names == {threading.current_thread().name}
    torch.set_num_threads(THREADS)


def test_callers_in_several_threads_get_their_own_answers() -> None:
    predictor, texts = made_predictor("gpt2"), made_texts(60)
    expected = [predictor.logits(texts[start:]) for start in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda start: predictor.logits(texts[start:]), [0, 1, 2, 3] * 3))
    for number, one in enumerate(found):
        np.testing.assert_array_equal(one, expected[number % 4])


@pytest.mark.usefixtures("threads")
def test_a_batch_that_fails_ends_it_with_its_error() -> None:
    batches = [np.array([number]) for number in range(ENOUGH * THREADS)]
    done: list[int] = []

    def compute(_: Any, rows: Any) -> torch.Tensor:
        done.append(int(rows[0]))
        if rows[0] == 2:
            raise MemoryError("no more")
        return torch.zeros(1)

    with pytest.raises(MemoryError, match="no more"):
        list(compute_batches(made_network("bert"), compute, batches))
    assert 2 in done
