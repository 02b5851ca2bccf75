"""A trained BP-SOM head as the head that plain transformers has, where that is a tanh layer: sigmoid(z) = (1 + tanh(z/2)) / 2."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from fairtune.methods.bpsom.head import BPSOMHead
from fairtune.methods.bpsom.model import BPSOMForSequenceClassification
from fairtune.models.model_parts import base_model, evaluating
from fairtune.models.transformers_files import Unloadable, draw_empty

LAYOUTS = (
    ("{base}.pooler.dense", "classifier"),
    ("classifier.dense", "classifier.out_proj"),
    ("{base}.pooler", "classifier"),
)
"""Where architectures keep the tanh layer and the outputs: BERT, RoBERTa, ALBERT, and their kin."""


def folded(model: BPSOMForSequenceClassification) -> PreTrainedModel | None:
    """The same classifier as transformers' own class; None where its head is not a tanh layer, or too narrow for the units.

    It is tried on a text, since only that shows which activation a class applies. The base model moves into what is returned.
    """
    try:
        plain = draw_empty(AutoModelForSequenceClassification, model.config, "bpsom: its head cannot be folded away")
    except Unloadable:  # transformers has no such class
        return None
    base, prefix = base_model(model), model.base_model_prefix
    pooler = getattr(getattr(plain, prefix, None), "pooler", None)
    had = getattr(base, "pooler", None)
    setattr(plain, prefix, base)
    if isinstance(pooler, nn.Module):
        base._modules["pooler"] = pooler
    device = next(model.parameters()).device
    for name, module in plain.named_children():
        if name != prefix:
            module.to_empty(device=device)
    if isinstance(pooler, nn.Module):
        pooler.to_empty(device=device)
    layers = _tanh_layers(plain, prefix, model.bpsom)
    if layers is not None:
        _fold(model.bpsom, *layers)
        with evaluating(model), evaluating(plain):
            if _same_answers(model, plain):
                return plain.train(model.training)
    if isinstance(pooler, nn.Module):
        base._modules["pooler"] = had
    return None


def _tanh_layers(plain: nn.Module, prefix: str, head: BPSOMHead) -> tuple[nn.Linear, nn.Linear] | None:
    for places in LAYOUTS:
        try:
            inner, out = (plain.get_submodule(place.format(base=prefix)) for place in places)
        except AttributeError:
            continue
        if (
            isinstance(inner, nn.Linear)
            and isinstance(out, nn.Linear)
            and inner.in_features == head.hidden.in_features
            and inner.out_features == out.in_features >= head.units
            and out.out_features == head.out.out_features
            and inner.bias is not None
            and out.bias is not None
        ):
            return inner, out
    return None


@torch.no_grad()
def _fold(head: BPSOMHead, inner: nn.Linear, out: nn.Linear) -> None:
    """Half of everything; the constant halves of the sigmoids go into the bias. Units that are not there are tanh(0) = 0."""
    units = head.units
    for parameter in (inner.weight, inner.bias, out.weight):
        parameter.zero_()
    inner.weight[:units] = head.hidden.weight / 2
    inner.bias[:units] = head.hidden.bias / 2
    out.weight[:, :units] = head.out.weight / 2
    out.bias.copy_(head.out.bias.double() + head.out.weight.double().sum(1) / 2)


@torch.no_grad()
def _same_answers(one: nn.Module, other: nn.Module) -> bool:
    """Whether two classifiers of the same base give the same logits, to rounding, on a made text."""
    embeddings: Any = cast(Any, base_model(one)).get_input_embeddings()
    rows, device = int(embeddings.weight.shape[0]), embeddings.weight.device
    ids = (torch.arange(12, device=device).reshape(2, 6) * 7 + rows // 3) % rows
    mask = torch.ones_like(ids)
    first, second = (model(input_ids=ids, attention_mask=mask).logits.float() for model in (one, other))
    return torch.allclose(first, second, atol=1e-4, rtol=1e-3)
