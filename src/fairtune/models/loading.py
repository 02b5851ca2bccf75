"""Loading a model and its tokenizer with plain transformers: safetensors only, no remote code, fp32 weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from fairtune.errors import ModelError
from fairtune.models.sources import ModelSource


@dataclass(frozen=True)
class LoadedModel:
    """A model as the checkpoint gives it.

    Args:
        from_checkpoint: names of its tensors that transformers read from the checkpoint; the others are a fresh head.
    """

    network: PreTrainedModel
    folder: Path
    from_checkpoint: frozenset[str]


def load_classifier(source: ModelSource, labels: tuple[str, ...]) -> LoadedModel:
    """The checkpoint with a classification head; a head it lacks is drawn from torch's generator."""
    folder = source.fetch()
    transformers_logging.set_verbosity_error()  # the card tells what transformers' load report tells
    transformers_logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(
            folder,
            num_labels=len(labels),
            id2label=dict(enumerate(labels)),
            label2id={label: number for number, label in enumerate(labels)},
        )
        config.problem_type = "single_label_classification"
        network, info = AutoModelForSequenceClassification.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(
            f"model '{source.name}': transformers cannot load it as a classifier: {_first_line(error)}"
        ) from None
    fresh = set(info["missing_keys"]) | {_key(item) for item in info["mismatched_keys"]}
    return LoadedModel(network, folder, frozenset(set(network.state_dict()) - fresh))


@lru_cache(maxsize=4)
def load_tokenizer(folder: Path, padding: bool = True) -> Any:
    """The checkpoint's tokenizer; checked, since a tokenizer without its vocabulary answers without an error.

    Args:
        padding: whether it must have a padding token, which token blocks do without.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"model {folder}: its tokenizer cannot be loaded: {_first_line(error)}") from None
    first, second = tokenizer("a good film")["input_ids"], tokenizer("the worst book")["input_ids"]
    if first == second:
        raise ModelError(
            f"model {folder}: its tokenizer gives different texts the same tokens; its vocabulary is missing."
        )
    if padding and tokenizer.pad_token_id is None:
        raise ModelError(f"model {folder}: its tokenizer has no padding token.")
    return tokenizer


def _key(item: Any) -> str:
    return str(item[0]) if isinstance(item, tuple) else str(item)


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
