"""A tiny BERT that learns in a few steps, and texts for it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch

from fairtune import TextClassifier
from fairtune.testing.toy import BAD, GOOD, PLAIN, VOCABULARY, make_tokenizer

QUICK: dict[str, Any] = {
    "lr": 0.03,
    "epochs": 3,
    "batch_size": 8,
    "validation": 0.2,
    "device": "cpu",
    "progress": False,
}


def make_model(folder: Path) -> Path:
    """A random BERT of one layer, drawn widely enough to learn at once."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


def make_texts(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Texts with good or bad words among others, and which of the two."""
    draw = random.Random(seed)
    texts, labels = [], []
    for i in range(count):
        words = [*draw.choices(PLAIN, k=draw.randint(1, 4)), *draw.choices((BAD, GOOD)[i % 2], k=2)]
        draw.shuffle(words)
        texts.append(" ".join(words))
        labels.append(("neg", "pos")[i % 2])
    return texts, labels


def quick(model: Path, **changes: Any) -> TextClassifier:
    """An estimator that fits in a moment."""
    return TextClassifier(model, **{**QUICK, **changes})
