"""`Predictor`: the scores that the plain model gives, whatever the order and the batches."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    XLNetConfig,
    XLNetForSequenceClassification,
)

from fairtune.classifier.predictor import Predictor
from fairtune.core.errors import ModelError
from fairtune.tasks.task import Texts
from fairtune.testing.toy import PLAIN, VOCABULARY, make_tokenizer

MAX_LENGTH = 24


@pytest.fixture(scope="module")
def network() -> Any:
    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, num_labels=3,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return BertForSequenceClassification(config).eval()


@pytest.fixture
def predictor(network: Any) -> Predictor:
    return Predictor(network, make_tokenizer(), MAX_LENGTH, batch_tokens=64)


def made(count: int, width: int = 1, seed: int = 0) -> list[Texts]:
    draw = random.Random(seed)
    return [tuple(" ".join(draw.choices(PLAIN, k=draw.randint(0, 40))) for _ in range(width)) for _ in range(count)]


def one_by_one(network: Any, texts: list[Texts]) -> Any:
    """What transformers gives for each text alone, without any padding."""
    tokenizer = make_tokenizer()
    found = []
    for text in texts:
        with torch.no_grad():
            batch = tokenizer(*text, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
            found.append(network(**batch).logits[0].numpy())
    return np.array(found)


def shapes_of(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Rows and columns of each batch, as they come."""
    shapes: list[tuple[int, int]] = []
    forward = predictor.network.forward

    def noted(**batch: Any) -> Any:
        shapes.append(tuple(batch["input_ids"].shape))
        return forward(**batch)

    monkeypatch.setattr(predictor.network, "forward", noted)
    return shapes


@pytest.mark.parametrize("width", [1, 2])
def test_gives_what_the_plain_model_gives_in_the_order_of_the_texts(
    network: Any, predictor: Predictor, width: int
) -> None:
    texts = made(60, width)
    found = predictor.logits(texts)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, one_by_one(network, texts), atol=1e-5)


def test_the_same_texts_in_another_order_give_the_same_bits(predictor: Predictor) -> None:
    texts = made(50)
    order = np.random.default_rng(0).permutation(len(texts))
    np.testing.assert_array_equal(predictor.logits([texts[place] for place in order]), predictor.logits(texts)[order])


def test_a_text_that_is_there_twice_is_computed_once(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = shapes_of(predictor, monkeypatch)
    texts = made(10)
    found = predictor.logits(texts * 5)
    assert sum(rows for rows, _ in shapes) == len(set(texts))
    np.testing.assert_array_equal(found, np.tile(found[:10], (5, 1)))


def test_batches_keep_to_their_budget_unless_one_text_is_longer(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = shapes_of(predictor, monkeypatch)
    predictor.logits(made(80))
    assert max(rows * width for rows, width in shapes) <= 64
    assert max(rows for rows, _ in shapes) > 1


def test_no_texts_give_no_rows_of_every_class(predictor: Predictor) -> None:
    assert predictor.logits([]).shape == (0, 3)


def test_progress_is_reported_for_every_text_once_copies_included(predictor: Predictor) -> None:
    reported: list[int] = []
    predictor.logits([*made(30), *made(5)], reported.append)
    assert sum(reported) == 35
    assert len(reported) > 1


def test_leaves_the_network_in_the_mode_it_was_in_and_draws_no_dropout(network: Any, predictor: Predictor) -> None:
    texts = made(8)
    expected = predictor.logits(texts)
    network.train()
    try:
        np.testing.assert_array_equal(predictor.logits(texts), expected)
        assert network.training
    finally:
        network.eval()


def test_an_empty_text_is_scored_also_where_nothing_is_put_around_it() -> None:
    tokenizer = make_tokenizer()
    tokenizer.backend_tokenizer.post_processor = None
    config = GPT2Config(
        vocab_size=len(VOCABULARY), n_embd=16, n_layer=1, n_head=2, n_positions=64, num_labels=2, pad_token_id=0
    )
    torch.manual_seed(0)
    predictor = Predictor(GPT2ForSequenceClassification(config), tokenizer, MAX_LENGTH)
    alone = predictor.logits([("",)])
    assert np.isfinite(alone).all()
    mixed = predictor.logits([("a good film",), ("",), ("the plot",)])
    np.testing.assert_allclose(mixed[1], alone[0], atol=1e-5)
    assert not np.allclose(mixed[0], mixed[2])


def test_a_model_that_is_made_for_padding_on_the_left_is_never_padded() -> None:
    tokenizer = make_tokenizer()
    tokenizer.padding_side = "left"
    config = XLNetConfig(vocab_size=len(VOCABULARY), d_model=16, n_layer=1, n_head=2, d_inner=32, num_labels=2)
    torch.manual_seed(0)
    network = XLNetForSequenceClassification(config).eval()
    texts = made(20)
    found = Predictor(network, tokenizer, MAX_LENGTH).logits(texts)
    for text, row in zip(texts, found, strict=True):
        np.testing.assert_allclose(row, Predictor(network, tokenizer, MAX_LENGTH).logits([text])[0], atol=1e-5)


def test_half_precision_is_close(network: Any) -> None:
    texts = made(20)
    exact = Predictor(network, make_tokenizer(), MAX_LENGTH).logits(texts)
    np.testing.assert_allclose(
        Predictor(network, make_tokenizer(), MAX_LENGTH, precision="bf16").logits(texts), exact, atol=0.05
    )


@pytest.mark.parametrize(
    ("precision", "expected"), [("fp16", "needs a GPU"), ("fp8", "allowed: auto, fp32, bf16, fp16")]
)
def test_a_precision_that_cannot_be_is_refused(network: Any, precision: str, expected: str) -> None:
    with pytest.raises(ModelError, match=expected):
        Predictor(network, make_tokenizer(), MAX_LENGTH, precision=precision)
