"""Layers compiled by torch for training, and batches padded to a few lengths so that few kernels are made.

Each layer is compiled by itself: layers of one shape share their kernels, and what methods do to embeddings and heads stays
outside. Evaluations, whose batches have all lengths, are computed by the plain layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers.modeling_layers import GradientCheckpointingLayer

from fairtune.core.errors import ModelError, RunFailure
from fairtune.methods.base import Batch
from fairtune.models.attention_kernels import outermost_networks
from fairtune.models.read_token import ReadTokenLayer
from fairtune.models.transformers_files import reason_of

BACKEND = "inductor"
SHORTEST, MOST_LENGTHS = 16, 8
MOST_KERNELS = 64
"""Versions of a layer that are compiled before torch gives up: lengths, with and without a mask, and each kind of layer."""


def bucket_lengths(longest: int) -> tuple[int, ...]:
    """At most eight lengths up to the longest: powers of two, and the middles between them."""
    steps = [SHORTEST << k for k in range(longest.bit_length())]
    found = sorted({step for step in (*steps, *(3 * step // 2 for step in steps)) if step < longest} | {longest})
    return tuple(found[-MOST_LENGTHS:])


def pad_batch(batch: Batch, lengths: Sequence[int]) -> Batch:
    """A batch padded on the right to the next of these lengths; one that is longer than all stays as it is."""
    mask = batch.get("attention_mask")
    if mask is None:
        return batch
    width = mask.shape[1]
    more = next((length for length in lengths if length >= width), width) - width
    if not more:
        return batch
    padded = {name: part for name, part in batch.items() if part.shape != mask.shape}
    return padded | {
        name: pad(part, (0, more), value=_padding(name, batch))
        for name, part in batch.items()
        if part.shape == mask.shape
    }


def _padding(name: str, batch: Batch) -> int:
    """What fills up; of tokens any, as the mask hides it, best what the batch is filled up with already."""
    if name != "input_ids":
        return 0
    hidden = batch["input_ids"][batch["attention_mask"] == 0]
    return int(hidden[0]) if len(hidden) else 0


def compile_layers(model: nn.Module, wary: bool = False) -> None:
    """Let the layers of a model be computed by compiled kernels while it learns; names and tensors stay.

    Args:
        wary: somebody may hook into layers later on, which is then looked for at every call.

    Raises:
        ModelError: it has no layers that are known as such.
    """
    layers = [layer for network in outermost_networks(model) for layer in _layers(network)]
    if not layers:
        names = ", ".join(type(network).__name__ for network in outermost_networks(model)) or type(model).__name__
        raise ModelError(f"compile: {names} has no layers that transformers marks as such; leave `compile` out.")
    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, MOST_KERNELS)
    if wary:
        config.skip_nnmodule_hook_guards = False
    for layer in layers:
        layer._compiled_call_impl = _while_learning(
            layer, torch.compile(layer._call_impl, backend=BACKEND, dynamic=False)
        )


def _layers(module: nn.Module) -> list[nn.Module]:
    """The outermost layers, without one that is computed for a single token."""
    if isinstance(module, ReadTokenLayer):
        return []
    if isinstance(module, GradientCheckpointingLayer):
        return [module]
    return [layer for child in module.children() for layer in _layers(child)]


def _while_learning(layer: nn.Module, compiled: Callable[..., Any]) -> Callable[..., Any]:
    plain: Callable[..., Any] = layer._call_impl

    def call(*given: Any, **more: Any) -> Any:
        if not (layer.training and torch.is_grad_enabled()):
            return plain(*given, **more)
        for value in (*given, *more.values()):
            if isinstance(value, Tensor) and value.ndim > 1:
                torch._dynamo.maybe_mark_dynamic(value, 0)  # the last batch of an epoch, and parts, have fewer rows
        try:
            return compiled(*given, **more)
        except torch._dynamo.exc.TorchDynamoException as error:
            reason = reason_of(getattr(error, "inner_exception", error))
            raise RunFailure(
                f"compile: torch cannot compile {type(layer).__name__} ({reason}); leave `compile` out"
            ) from None

    return call
