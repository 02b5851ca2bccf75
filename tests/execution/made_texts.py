"""A small language model with its tokenizer on disk, a text that it can learn, and a study of both."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import torch

from fairtune.study.plan import make_plan
from fairtune.study.run_spec import RunSpec
from fairtune.study.study_file import load_study
from tests.tasks.made_tokenizers import byte_level

POSITIONS = 48
VOCABULARY = 400
WHO, DID, WHERE = ("fox", "owl", "hare", "mole"), ("ran", "slept", "sang"), ("hill", "river", "wood")


def make_model(folder: Path, kind: str = "gpt2", vocabulary: int = VOCABULARY, positions: int = POSITIONS) -> Path:
    """A folder with a random language model of two layers, 32 wide, and a byte-level tokenizer without a padding token."""
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {
        "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": positions},
        "bert": {
            "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
            "max_position_embeddings": positions,
        },
    }[kind]  # fmt: skip
    tokenizer = byte_level()
    special = {"bos_token_id": tokenizer.eos_token_id, "eos_token_id": tokenizer.eos_token_id}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = AutoConfig.for_model(kind, vocab_size=vocabulary, **sizes, **special)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_text(file: Path, documents: int, seed: int, longest: int = 6) -> Path:
    """Documents of a few sentences, some of one, some longer than a block."""
    draw = random.Random(seed)
    lines = []
    for _ in range(documents):
        sentences = [
            f"The {draw.choice(WHO)} {draw.choice(DID)} by the {draw.choice(WHERE)}."
            for _ in range(draw.randint(1, longest))
        ]
        lines.append(json.dumps({"text": " ".join(sentences)}))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def study_of(model: Path | str | dict[str, Any], folder: Path, **train: Any) -> dict[str, Any]:
    """Eight steps over blocks of 32 tokens, an evaluation every four."""
    splits = {"train": (60, 1), "validation": (12, 2), "test": (14, 3)}
    files = {split: str(write_text(folder / f"{split}.jsonl", *made)) for split, made in splits.items()}
    settings = {
        "steps": 8,
        "batch_size": 4,
        "lr": 1e-2,
        "warmup": 2,
        "schedule": "cosine",
        "evaluate": 4,
        "max_length": 32,
    }
    return {
        "study": "text",
        "task": {"kind": "language_model", "name": "animals", **files},
        "model": model if isinstance(model, dict) else str(model),
        "train": {**settings, **train},
        "seeds": [0],
        "arms": {"arm": {}},
        "compare": {"to": "arm"},
        "execution": {"checkpoint_every": 3, "devices": "cpu"},
    }


def job_of(study: dict[str, Any], runs: Path, methods: list[Any] | None = None, seed: int = 0, **train: Any) -> RunSpec:
    """The run of one arm."""
    source = {
        **study,
        "train": {**study["train"], **train},
        "seeds": [seed],
        "arms": {"arm": {"methods": methods or []}},
    }
    plan = make_plan(load_study(source))
    return plan.runs[0].at(runs)
