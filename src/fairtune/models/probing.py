"""Measuring a model on a real batch without training it: the spread of its attention logits, and its matrix products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from transformers.utils import logging as transformers_logging

Batch = Mapping[str, Tensor]


@dataclass(frozen=True)
class Flops:
    """Floating point operations of the matrix products of one training pass over a batch, elementwise work not counted."""

    forward: int
    backward: int
    tokens: int

    @property
    def total(self) -> int:
        return self.forward + self.backward


@dataclass(frozen=True)
class Spread:
    """How far apart the attention logits of one layer lie.

    Args:
        layer: where transformers reports it: `attentions.0` is the first layer's.
        heads: for each head, the standard deviation of a query's logits over the keys it may see, averaged over queries.
    """

    layer: str
    heads: tuple[float, ...]


def count_flops(model: nn.Module, batch: Batch) -> Flops:
    """Count with torch's flop counter; attention is computed eagerly, so that its products are seen. Leaves no gradient."""
    counts = []
    with _probing(model), torch.random.fork_rng(devices=_cuda(model)):
        with FlopCounterMode(display=False) as forward:
            loss = model(**batch).loss
        counts.append(forward.get_total_flops())
        with FlopCounterMode(display=False) as backward:
            loss.backward()
        counts.append(backward.get_total_flops())
    for parameter in model.parameters():
        parameter.grad = None
    return Flops(counts[0], counts[1], batch["input_ids"].numel())


def logit_spread(model: nn.Module, batch: Batch) -> tuple[Spread, ...]:
    """The spread of the attention logits of every layer and head on a batch; empty for a model that does not tell.

    It is read from the attention probabilities: softmax keeps differences of logits, whatever the architecture adds to them.
    """
    with _probing(model), torch.no_grad():
        try:
            outputs = model(**batch, output_attentions=True)
        except (TypeError, ValueError):
            return ()
    found = []
    for kind in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"):
        for number, probabilities in enumerate(outputs.get(kind) or ()):
            if isinstance(probabilities, Tensor) and probabilities.ndim == 4:
                found.append(Spread(f"{kind}.{number}", _spread(probabilities, batch.get("attention_mask"))))
    return tuple(found)


def _spread(probabilities: Tensor, mask: Tensor | None) -> tuple[float, ...]:
    """Per head; of queries that are no padding and see at least two keys."""
    probabilities = probabilities.double()
    seen = probabilities > 0
    logs = torch.where(seen, probabilities, 1.0).log()
    count = seen.sum(-1)
    mean = logs.sum(-1) / count.clamp(min=1)
    variance = (torch.where(seen, (logs - mean.unsqueeze(-1)) ** 2, 0.0)).sum(-1) / (count - 1).clamp(min=1)
    counted = count > 1
    if mask is not None and mask.shape == (probabilities.shape[0], probabilities.shape[2]):
        counted = counted & mask.bool()[:, None, :]
    total = torch.where(counted, variance.sqrt(), 0.0).sum(dim=(0, 2))
    return tuple((total / counted.sum(dim=(0, 2)).clamp(min=1)).tolist())


@contextmanager
def _probing(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and eager attention for a while."""
    settable: Any = model
    before, training = getattr(model.config, "_attn_implementation", None), model.training
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    model.eval()
    try:
        if before not in (None, "eager"):
            settable.set_attn_implementation("eager")
        yield
    finally:
        if before not in (None, "eager"):
            settable.set_attn_implementation(before)
        transformers_logging.set_verbosity(verbosity)
        model.train(training)


def _cuda(model: nn.Module) -> list[torch.device]:
    device = next(model.parameters()).device
    return [device] if device.type == "cuda" else []
