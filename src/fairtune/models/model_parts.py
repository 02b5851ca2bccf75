"""The parts of a transformers model: its base model, the head outside of it, its token embeddings; and its modes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils import is_flash_attn_2_available

from fairtune.core.errors import ModelError
from fairtune.models.transformers_files import explain_failure, quiet_transformers


def base_model(model: nn.Module) -> nn.Module:
    """The model without its head; a model without a head is its own base."""
    found = getattr(model, str(getattr(model, "base_model_prefix", "")) or "-", model)
    return found if isinstance(found, nn.Module) else model


def text_encoder(model: nn.Module) -> nn.Module:
    """The part of a model that reads the text: its base model; of an encoder-decoder, the encoder."""
    found: nn.Module = _encoder(base_model(model))
    return found


def head_parameters(model: nn.Module) -> frozenset[str]:
    """Names of the parameters outside the base model; one that is tied to the base model's is not the head's own."""
    base = {id(parameter) for parameter in base_model(model).parameters()}
    return frozenset(name for name, parameter in model.named_parameters() if id(parameter) not in base)


def head_modules(model: nn.Module) -> list[str]:
    """Names of the modules, directly under the model, that hold the head's parameters."""
    return list(dict.fromkeys(name.partition(".")[0] for name in sorted(head_parameters(model))))


def token_embeddings(model: nn.Module) -> nn.Module:
    """The module that the model calls with the numbers of its input's tokens, before positions and normalisation.

    Of an encoder-decoder it is the encoder's. What wraps the model (PEFT, accelerate, BP-SOM) is looked through; where PEFT
    adapts the embeddings themselves, it is the adapted module.
    """
    inner: Any = extract_model_from_parallel(model, keep_torch_compile=False)
    while hasattr(inner, "get_base_model"):  # PEFT
        inner = inner.get_base_model()
    if not isinstance(inner, PreTrainedModel):
        inner = base_model(inner)
    found = _embeddings(_encoder(inner)) or _embeddings(inner)
    if found is None:
        raise ModelError(
            f"{type(inner).__name__} has no token embeddings that `get_input_embeddings` knows; use a transformers model of text."
        )
    return found


def require_rows(model: nn.Module, tokens: npt.NDArray[np.unsignedinteger[Any]]) -> None:
    """Refuse tokens that a model has no embedding for, as another model's tokenizer gives them."""
    if not isinstance(model, PreTrainedModel) or not len(tokens):
        return
    found, largest = _embeddings(_encoder(model)) or _embeddings(model), int(tokens.max())
    if isinstance(found, nn.Embedding) and largest >= found.num_embeddings:
        raise ModelError(
            f"{type(model).__name__}: its tokenizer gives token {largest:,}, but it has embeddings for {found.num_embeddings:,} "
            "tokens only; the tokenizer is not this model's."
        )


def _encoder(model: Any) -> Any:
    """An encoder that is a model by itself, since it has embeddings of its own; else the model."""
    encoder = model.get_encoder() if hasattr(model, "get_encoder") else None
    return encoder if isinstance(encoder, PreTrainedModel) else model


def _embeddings(model: Any) -> nn.Module | None:
    try:
        found = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        return None
    if not isinstance(found, nn.Module) or not any(isinstance(part, nn.Embedding) for part in found.modules()):
        return None  # patches of an image, frames of a sound
    return found


Batch = Mapping[str, Tensor]


def only_base(model: nn.Module) -> nn.Module:
    """The one base model in a model, whatever wraps it."""
    outermost: dict[str, nn.Module] = {}
    for name, module in model.named_modules():
        known = isinstance(module, PreTrainedModel) or "base_model_prefix" in vars(module)
        if known and not any(f"{name}.".startswith(f"{other}.") or not other for other in outermost):
            outermost[name] = module
    if len(outermost) != 1:
        raise ModelError(
            f"{type(model).__name__} holds {len(outermost)} transformers models, not one, so its layers have no one order."
        )
    return base_model(next(iter(outermost.values())))


def run_tokens(base: nn.Module, length: int) -> None:
    """Send a text of so many tokens through a base model, for those who watch; modes and torch's generators stay as they are."""
    device = next(base.parameters()).device
    ids = 1 + torch.arange(length, device=device)[None]
    given: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if "decoder_input_ids" in inspect.signature(base.forward).parameters:
        given["decoder_input_ids"] = ids
    with (
        explain_failure(f"{type(base).__name__}: a text of {length} tokens cannot go through it"),
        evaluating(base),
        torch.no_grad(),
        torch.random.fork_rng(devices=cuda_of(base)),
    ):
        base(**given)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Afterwards each module has its own mode back, since a frozen part may not train while others do."""
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


@contextmanager
def measuring(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and eager attention for a while."""
    settable: Any = model
    before = getattr(model.config, "_attn_implementation", None)
    with quiet_transformers(), evaluating(model):
        try:
            if before not in (None, "eager"):
                settable.set_attn_implementation("eager")
            yield
        finally:
            if before not in (None, "eager"):
                settable.set_attn_implementation(before)


def cuda_of(model: nn.Module) -> list[torch.device]:
    """The device whose generator must be kept, where the model is on a GPU."""
    device = next(model.parameters()).device
    return [device] if device.type == "cuda" else []


def outermost_networks(model: nn.Module) -> list[Any]:
    """The transformers models in a model that are in no other: itself, or what a method or a library wrapped."""
    if isinstance(model, PreTrainedModel):
        return [model]
    return [network for child in model.children() for network in outermost_networks(child)]


KERNELS = {"sdpa": "sdpa", "eager": "eager", "flash": "flash_attention_2"}
"""Ways to compute attention: a study's words, and transformers'."""


def use_kernel(model: nn.Module, kernel: str | None, device: torch.device) -> None:
    """Let a model compute its attention so; None leaves it as it is."""
    if kernel is None:
        return
    if kernel == "flash" and device.type != "cuda":
        raise ModelError(
            f"attention_kernel: flash needs a GPU, and this run is on {device.type}; use sdpa, or leave it out."
        )
    if kernel == "flash" and not is_flash_attn_2_available():
        raise ModelError(
            "attention_kernel: flash needs the package flash-attn, which is not installed; use sdpa, or install it."
        )
    for network in outermost_networks(model):
        what = f"attention_kernel: {kernel} does not work for {type(network).__name__}"
        with explain_failure(what):
            network.set_attn_implementation(KERNELS[kernel])
        if getattr(network.config, "_attn_implementation", None) != KERNELS[kernel]:
            raise ModelError(f"{what}, which computes attention in a way of its own; leave it out.")
