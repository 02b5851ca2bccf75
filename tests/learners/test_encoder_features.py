"""What a frozen encoder makes of texts: means of its states, made once, the same bits from the cache or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fairtune.learners import encoder_features as module
from fairtune.learners.encoder_features import compute_features, encoder_features, load_encoder
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer
from fairtune.tasks.task import Split
from fairtune.tasks.tokens.encoded_splits import Encoded, collate, encode
from fairtune.testing.toy import VOCABULARY, make_tokenizer

TEXTS = ["a good film", "the worst book and its very dull plot", "warm", "some story in its way with w1 w2 w3"]


def as_tokens(folder: Path, texts: list[str] = TEXTS) -> tuple[Any, Any, Encoded]:
    source, tokenizer = find_model(str(folder)), load_tokenizer(folder)
    split = Split.of([f"t{i}" for i in range(len(texts))], [(text,) for text in texts], np.zeros(len(texts), np.int64))
    return source, tokenizer, encode(split, tokenizer, 32)


@pytest.fixture
def tiny_gpt(tmp_path: Path) -> Path:
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    GPT2Model(GPT2Config(vocab_size=len(VOCABULARY), n_embd=32, n_layer=2, n_head=4, n_positions=64)).save_pretrained(
        tmp_path
    )
    make_tokenizer().save_pretrained(tmp_path)
    return tmp_path


@pytest.fixture
def tiny_t5(tmp_path: Path) -> Path:
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(VOCABULARY), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize("model", ["tiny_model", "tiny_gpt", "tiny_t5"])
def test_a_vector_is_the_mean_of_the_states_of_its_own_tokens(model: str, request: pytest.FixtureRequest) -> None:
    """Of BERT, of GPT and of an encoder-decoder's encoder; padding has no part in it."""
    source, tokenizer, data = as_tokens(request.getfixturevalue(model))
    encoder = load_encoder(source, tokenizer)
    found = compute_features(encoder, data)
    assert found.shape == (len(TEXTS), 32)
    for place in range(len(TEXTS)):
        alone = {k: torch.from_numpy(v) for k, v in collate(data, np.array([place])).items() if k != "labels"}
        with torch.no_grad():
            states = encoder(**alone).last_hidden_state[0]
        np.testing.assert_allclose(found[place], states.mean(dim=0).numpy(), atol=1e-5)


def test_vectors_are_made_once_and_are_the_same_bits_from_the_cache(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, tokenizer, data = as_tokens(tiny_model)
    told: list[int] = []
    fresh = compute_features(load_encoder(source, tokenizer), data)
    first = encoder_features(source, tokenizer, data, report=told.append)
    assert told[-1] == len(TEXTS)
    monkeypatch.setattr(module, "load_encoder", lambda *_: pytest.fail("it is in the cache"))
    assert np.array_equal(encoder_features(source, tokenizer, data), first)
    assert np.array_equal(fresh, first)


@pytest.mark.parametrize("change", ["texts", "threads", "model"])
def test_what_changes_the_bits_is_part_of_the_name_in_the_cache(
    change: str, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, tokenizer, data = as_tokens(tiny_model)
    names: list[str] = []
    monkeypatch.setattr(module, "cached", lambda area, key, *_: names.append(key))  # noqa: ARG005
    encoder_features(source, tokenizer, data)
    encoder_features(source, tokenizer, data)
    if change == "texts":
        data = as_tokens(tiny_model, ["other", *TEXTS[1:]])[2]
    elif change == "threads":
        monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    else:
        source = type(source)(**{**source.as_json(), "identity": "0" * 64})
    encoder_features(source, tokenizer, data)
    assert names[0] == names[1] != names[2]
