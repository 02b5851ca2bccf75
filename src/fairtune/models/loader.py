"""Loading a model with plain transformers: safetensors only, no remote code, fp32; drawing a preset.

A head that the checkpoint has no weights for is as it should be; a fresh encoder would be another experiment, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, GenerationConfig, PreTrainedModel

from fairtune.core.errors import ModelError, one_of
from fairtune.models.causal_classifier import Attention, classify_at_last_token, sees_ahead
from fairtune.models.folder_safety import CONFIG, GENERATION
from fairtune.models.model_parts import base_model, text_encoder
from fairtune.models.presets import preset_config
from fairtune.models.sources import ModelSource
from fairtune.models.transformers_files import (
    draw_network,
    explain_failure,
    load_network,
    make_config,
    read_config,
    reason_of,
)

SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id")
"""Special tokens that a model learns from its tokenizer."""
FEW = 3
"""How many names a message has room for."""


@dataclass(frozen=True)
class LoadedModel:
    """A model as the checkpoint gives it, or as a preset draws it.

    Args:
        folder: of the checkpoint; None for a preset.
        from_checkpoint: names of its tensors that transformers read from the checkpoint; the others are a fresh head. All of
            them for a preset.
        rebuilt: draws a preset's tensors once more, from the generator's state at which the network was drawn.
        notes: what a reader of results must know about it, such as a pooler that the checkpoint lacks.
    """

    network: PreTrainedModel
    folder: Path | None
    from_checkpoint: frozenset[str]
    rebuilt: Callable[[], Mapping[str, Tensor]] | None = None
    notes: tuple[str, ...] = ()


def load_classifier(
    source: ModelSource, labels: tuple[str, ...], tokenizer: Any = None, attention: Attention | None = None
) -> LoadedModel:
    """The model with a classification head; a head that a checkpoint lacks is drawn from torch's generator.

    The tokenizer gives the model its special tokens. How a GPT-like model attends is its own way unless said.
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
    with explain_failure(f"model '{source.name}': no text goes through it"):
        _tell_tokens(loaded.network, tokenizer)
        classify_at_last_token(loaded.network, attention)
    return loaded


def load_language_model(source: ModelSource, tokenizer: Any = None) -> LoadedModel:
    """The model with its language modelling head; the tokenizer gives it its special tokens."""
    loaded = _drawn(source, AutoModelForCausalLM, {}) if source.preset is not None else _trained_language_model(source)
    _tell_tokens(loaded.network, tokenizer)
    return loaded


def _trained_classifier(source: ModelSource, heads: Mapping[str, Any]) -> LoadedModel:
    folder, what = source.fetch(), f"model '{source.name}'"
    config = read_config(folder, what, **heads)
    config.problem_type = "single_label_classification"
    network, info = load_network(
        AutoModelForSequenceClassification, folder, what, "a classifier", config, ignore_mismatched_sizes=True
    )
    missing, mismatched = set(info["missing_keys"]), {item[0] for item in info["mismatched_keys"]}
    notes = _fresh_weight_notes(network, missing, mismatched, what)
    return LoadedModel(network, folder, frozenset(set(network.state_dict()) - missing - mismatched), notes=notes)


def _trained_language_model(source: ModelSource) -> LoadedModel:
    folder, what = source.fetch(), f"model '{source.name}'"
    network, info = load_network(AutoModelForCausalLM, folder, what, "a language model")
    require_causal(source, network)
    if missing := sorted(info["missing_keys"]):
        raise ModelError(
            f"{what}: its checkpoint is not a language model: it has no weights for {len(missing)} tensors of "
            f"{type(network).__name__} ({one_of(missing, FEW)})."
        )
    notes: tuple[str, ...] = ()
    try:  # transformers loads wrong settings of generation but would not save them, and a run would end without its model
        network.generation_config.validate(strict=True)
    except ValueError as error:
        network.generation_config = GenerationConfig.from_model_config(network.config)
        notes = (f"{what}: its {GENERATION} is left out, as transformers would not save it ({reason_of(error)}).",)
    return LoadedModel(network, folder, frozenset(network.state_dict()), notes=notes)


def require_causal(source: ModelSource, network: PreTrainedModel) -> None:
    """Refuse a network whose tokens see those after them."""
    with explain_failure(f"model '{source.name}': no text goes through it"):
        ahead = sees_ahead(network)
    if ahead:
        raise ModelError(
            f"model '{source.name}': {type(network).__name__} is not a causal language model: its tokens see those after them, so "
            "it would know what it has to predict. Use a GPT-like checkpoint or a preset."
        )


def _drawn(source: ModelSource, model_class: Any, more: Mapping[str, Any]) -> LoadedModel:
    """A preset, drawn from torch's generator by transformers' own rules."""
    what = f"model '{source.name}'"
    if source.vocabulary is None:
        raise ModelError(
            f"{what}: its vocabulary is not known; give a tokenizer or vocab_size, as in "
            f"`{source.name.partition('(')[0]}(vocab_size=8000)`."
        )

    def draw() -> PreTrainedModel:
        values = preset_config(source.preset or {})
        config = make_config(values.pop("model_type"), {**values, **more}, what)
        return draw_network(model_class, config, what, dtype=torch.float32, attn_implementation="sdpa").eval()

    def draw_again() -> Mapping[str, Tensor]:
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(state)
            tensors: dict[str, Tensor] = draw().state_dict()
            return tensors

    state = torch.get_rng_state()
    network = draw()
    return LoadedModel(network, None, frozenset(network.state_dict()), draw_again)


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


def _fresh_weight_notes(
    network: PreTrainedModel, missing: Collection[str], mismatched: Collection[str], what: str
) -> tuple[str, ...]:
    """What a reader must know of tensors below the head that are not in the checkpoint; a mostly fresh model is refused."""
    own = {id(parameter) for parameter in base_model(network).parameters()}
    body = [name for name, parameter in network.named_parameters() if id(parameter) in own]
    if wrong := [name for name in body if name in mismatched]:
        raise ModelError(
            f"{what}: {len(wrong)} tensors have another shape in its weights than its {CONFIG} says "
            f"({one_of(wrong, FEW)}); one of the two is not of this model."
        )
    fresh = [name for name in body if name in missing]
    few = one_of(fresh, FEW)
    said = f"{what}: its checkpoint has no weights for {len(fresh)} of the {len(body)} tensors below the head ({few})"
    inner = {id(parameter) for parameter in text_encoder(network).parameters()}  # which also stands without its decoder
    inside = {name: parameter.numel() for name, parameter in network.named_parameters() if id(parameter) in inner}
    lost = [size for name, size in inside.items() if name in missing]
    if 2 * len(lost) > len(inside) or 2 * sum(lost) > sum(inside.values()):
        raise ModelError(f"{said}, so it would be trained from random weights; is its {CONFIG} that of another model?")
    return (f"{said}; they start from random values.",) if fresh else ()
