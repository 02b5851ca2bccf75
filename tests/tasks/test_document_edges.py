"""Edges of documents: EOS after each, BOS before it where the tokenizer has one, and windows that hold whole documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_tokenizers import EOS, STORIES, byte_level, in_memory
from transformers import PreTrainedTokenizerFast

from fairtune.tasks.tokens.blocks import TokenBlocks, token_blocks

BOS = "<|begin|>"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))


def with_bos(adds: bool = True) -> Any:
    """A tokenizer that knows a BOS and, as Llama's, puts it before each text."""
    from tokenizers import Tokenizer, processors

    inner = Tokenizer.from_str(byte_level().backend_tokenizer.to_str())
    inner.add_special_tokens([BOS])
    if adds:
        place = inner.token_to_id(BOS)
        inner.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, place)])
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=EOS, bos_token=BOS)


def made(texts: list[str], tokenizer: Any, tokens: int | None = None) -> TokenBlocks:
    return token_blocks(in_memory([texts]), "train", tokenizer, tokens)


def test_each_document_begins_with_bos_where_the_tokenizer_puts_one() -> None:
    tokenizer = with_bos()
    found, plain = made(STORIES, tokenizer), made(STORIES, byte_level())
    bos = tokenizer.bos_token_id
    stream, starts = np.asarray(found.stream), np.cumsum(found.documents[:, 0]) - found.documents[:, 0]
    assert found.bos == bos
    assert (stream[starts] == bos).all()
    assert int((stream == bos).sum()) == len(STORIES) == int((stream == found.eos).sum())
    assert np.array_equal(stream[stream != bos], plain.stream)
    assert plain.bos is None
    assert (found.counts.bytes, found.counts.words) == (plain.counts.bytes, plain.counts.words)


def test_a_bos_that_the_tokenizer_never_puts_is_not_put() -> None:
    assert made(STORIES, with_bos(adds=False)).bos is None


def test_what_looks_like_bos_in_a_text_is_text() -> None:
    found = made([f"a {BOS} b", BOS], with_bos())
    assert int((np.asarray(found.stream) == found.bos).sum()) == 2


@pytest.mark.parametrize("tokens", [1, 2, 3, 50])
def test_a_limit_may_fall_on_any_place_of_a_document(tokens: int) -> None:
    found = made(STORIES, with_bos(), tokens)
    assert found.counts.tokens == len(found.stream) == tokens == int(found.documents[:, 0].sum())
    assert found.counts.bytes == int(found.documents[:, 1].sum())
    assert found.counts.words == int(found.documents[:, 2].sum())


@pytest.mark.parametrize("tokenizer", [byte_level(), with_bos()], ids=["EOS", "BOS and EOS"])
@pytest.mark.parametrize("length", [2, 7, 60, 200])
def test_every_token_of_the_text_is_a_target_once_and_predicted_from_what_stands_before_it(
    tokenizer: Any, length: int
) -> None:
    found = made(STORIES, tokenizer)
    stream = np.asarray(found.stream)
    seen = np.zeros(len(stream), int)
    for start, end in found.spans(length):
        inputs, targets = found.window(start, end)
        assert 0 < len(inputs) == len(targets) <= length
        assert np.array_equal(targets, stream[start:end])
        assert inputs[0] == (stream[start - 1] if start else found.eos)
        assert np.array_equal(inputs[1:], targets[:-1])
        seen[start:end] += 1
    assert (seen[found.is_text] == 1).all()
    assert np.array_equal(
        found.is_text, (stream != found.eos) & (stream != (found.eos if found.bos is None else found.bos))
    )
    assert int(found.is_text.sum()) == found.counts.tokens - found.edges * found.counts.documents


def test_a_document_that_fits_is_never_cut() -> None:
    found = made(STORIES, byte_level())
    longest = int(found.documents[:, 0].max())
    ends = set(np.cumsum(found.documents[:, 0]).tolist())
    spans = found.spans(longest)
    assert all(end in ends for _, end in spans)
    assert len(spans) <= len(STORIES)


def test_a_long_document_goes_on_in_the_next_window_and_shares_its_last_with_others() -> None:
    found = made([" ".join(STORIES[:6]), "short", "shorter"], byte_level())
    size = int(found.documents[0, 0])
    length = size // 2 + 10
    assert found.spans(length) == [(0, length), (length, found.counts.tokens)]
