"""Loading a model and its tokenizer with plain transformers: safetensors only, no remote code, fp32. Drawing a preset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
)
from transformers.utils import logging as transformers_logging

from fairtune.errors import ModelError
from fairtune.models.causal import Attention, classify_at_last_token, sees_ahead
from fairtune.models.presets import preset_config
from fairtune.models.sources import ModelSource

SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id")


@dataclass(frozen=True)
class LoadedModel:
    """A model as the checkpoint gives it, or as a preset draws it.

    Args:
        folder: of the checkpoint; None for a preset.
        from_checkpoint: names of its tensors that transformers read from the checkpoint; the others are a fresh head. All of
            them for a preset.
        rebuilt: draws a preset's tensors once more, from the generator's state at which the network was drawn.
    """

    network: PreTrainedModel
    folder: Path | None
    from_checkpoint: frozenset[str]
    rebuilt: Callable[[], Mapping[str, Tensor]] | None = None


def load_classifier(
    source: ModelSource, labels: tuple[str, ...], tokenizer: Any = None, attention: Attention | None = None
) -> LoadedModel:
    """The model with a classification head; a head that a checkpoint lacks is drawn from torch's generator.

    Args:
        tokenizer: of transformers, which tells the model its special tokens; None leaves them as they are.
        attention: of a GPT-like model; None is its own.
    """
    heads = {
        "num_labels": len(labels),
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    if source.preset is not None:
        loaded = _drawn(source, AutoModelForSequenceClassification, heads)
        loaded.network.config.problem_type = "single_label_classification"
    else:
        loaded = _trained_classifier(source, heads)
    _tell_tokens(loaded.network, tokenizer)
    classify_at_last_token(loaded.network, attention)
    return loaded


def load_language_model(source: ModelSource, tokenizer: Any = None) -> LoadedModel:
    """The model with its language modelling head.

    Args:
        tokenizer: of transformers, which tells the model its special tokens; None leaves them as they are.

    Raises:
        ModelError: it cannot be loaded, a token of it sees those after it, or the checkpoint has no language modelling head.
    """
    loaded = _drawn(source, AutoModelForCausalLM, {}) if source.preset is not None else _trained_language_model(source)
    _tell_tokens(loaded.network, tokenizer)
    return loaded


def _trained_classifier(source: ModelSource, heads: Mapping[str, Any]) -> LoadedModel:
    folder = source.fetch()
    _quiet()
    try:
        config = AutoConfig.from_pretrained(folder, **heads)
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


def _trained_language_model(source: ModelSource) -> LoadedModel:
    folder = source.fetch()
    _quiet()
    try:
        network, info = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, use_safetensors=True, output_loading_info=True
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(
            f"model '{source.name}': transformers cannot load it as a language model: {_first_line(error)}"
        ) from None
    require_causal(source, network)
    if info["missing_keys"]:
        missing = sorted(info["missing_keys"])
        raise ModelError(
            f"model '{source.name}': its checkpoint is no language model: it has no weights for {len(missing)} tensors of "
            f"{type(network).__name__} ({', '.join(missing[:3])})."
        )
    return LoadedModel(network, folder, frozenset(network.state_dict()))


def require_causal(source: ModelSource, network: PreTrainedModel) -> None:
    """Refuse a network whose tokens see those after them."""
    if sees_ahead(network):
        raise ModelError(
            f"model '{source.name}': {type(network).__name__} is no causal language model: its tokens see those after them, so it "
            "would know what it has to predict. Use a GPT-like checkpoint or a preset."
        )


def _drawn(source: ModelSource, kind: Any, more: Mapping[str, Any]) -> LoadedModel:
    """A preset, drawn from torch's generator by transformers' own rules."""
    if source.vocabulary is None:
        raise ModelError(
            f"model '{source.name}': its vocabulary is not known; give a tokenizer or vocab_size, as in "
            f"`{source.name.partition('(')[0]}(vocab_size=8000)`."
        )
    state = torch.get_rng_state()
    network = _draw(source, kind, more)
    return LoadedModel(network, None, frozenset(network.state_dict()), partial(_drawn_again, source, kind, more, state))


def _draw(source: ModelSource, kind: Any, more: Mapping[str, Any]) -> PreTrainedModel:
    values = preset_config(source.preset or {})
    config = AutoConfig.for_model(values.pop("model_type"), **values, **more)
    network: PreTrainedModel = kind.from_config(config, dtype=torch.float32, attn_implementation="sdpa")
    return network.eval()


def _drawn_again(source: ModelSource, kind: Any, more: Mapping[str, Any], state: Tensor) -> Mapping[str, Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(state)
        tensors: dict[str, Tensor] = _draw(source, kind, more).state_dict()
        return tensors


def _tell_tokens(network: PreTrainedModel, tokenizer: Any) -> None:
    """Tell a model which tokens are special; after it was built, or a Llama's row of the padding would be zero and never learn."""
    if tokenizer is None:
        return
    generation = getattr(network, "generation_config", None)  # which a classifier has not
    for name in SPECIAL:
        token = getattr(tokenizer, name)
        if token is not None:
            setattr(network.config, name, token)
            if generation is not None:
                setattr(generation, name, token)
    embeddings: Any = network.get_input_embeddings()
    if tokenizer.pad_token_id == tokenizer.eos_token_id == getattr(embeddings, "padding_idx", None):
        embeddings.padding_idx = None  # an EOS that also pads is a word of the text, and learns


def _quiet() -> None:
    transformers_logging.set_verbosity_error()  # the card tells what transformers' load report tells
    transformers_logging.disable_progress_bar()


@lru_cache(maxsize=4)
def load_tokenizer(folder: Path, padding: bool = True) -> Any:
    """The tokenizer in a folder; checked, since a tokenizer without its vocabulary answers without an error.

    Args:
        padding: whether it must have a padding token, which token blocks do without; one that has none pads with its EOS.
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
        if tokenizer.eos_token_id is not None:
            tokenizer.pad_token = tokenizer.eos_token
            return tokenizer
        raise ModelError(
            f"model {folder}: its tokenizer has no padding token, and no end-of-text token (EOS) to pad with."
        )
    return tokenizer


def _key(item: Any) -> str:
    return str(item[0]) if isinstance(item, tuple) else str(item)


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
