"""A random BERT of two layers with its tokenizer, and a task of a few hundred texts that it can learn, made on disk in a second."""

from __future__ import annotations

import csv
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

GOOD = ["good", "great", "fine", "lovely", "brilliant", "warm"]
BAD = ["bad", "worst", "dull", "poor", "boring", "cold"]
PLAIN = ["a", "the", "film", "book", "story", "plot", "was", "is", "and", "with", "some", "very", "in", "its", "way"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, *GOOD, *BAD, *PLAIN, *(f"w{i}" for i in range(40))]


def make_tokenizer() -> Any:
    """A BERT-like tokenizer of whole words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def make_tiny_model(folder: Path) -> Path:
    """Fill a folder with a random BERT of two layers, without a head: config.json, model.safetensors, tokenizer files."""
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class TaskFiles:
    """The files of a toy task: one of two kinds of words decides the label."""

    train: Path
    validation: Path
    test: Path

    def as_study(self) -> dict[str, Any]:
        """The task as a study file gives it."""
        files = {split: str(file) for split, file in asdict(self).items()}
        return {"name": "toy", **files, "text": "text", "label": "label"}


def make_tiny_task(folder: Path) -> TaskFiles:
    """CSV files of a learnable task: 200 training, 60 validation and 60 test rows, columns `text` and `label`."""
    generator = random.Random(7)
    files = {}
    for split, size in (("train", 200), ("validation", 60), ("test", 60)):
        files[split] = folder / f"{split}.csv"
        with files[split].open("w", newline="", encoding="utf-8") as handle:
            writer = csv.writer(handle)
            writer.writerow(["text", "label"])
            for i in range(size):
                words = [*generator.choices(PLAIN, k=generator.randint(3, 12)), generator.choice((BAD, GOOD)[i % 2])]
                generator.shuffle(words)
                writer.writerow([" ".join(words), ("neg", "pos")[i % 2]])
    return TaskFiles(**files)
