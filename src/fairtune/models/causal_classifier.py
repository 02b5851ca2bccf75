"""Classifying with GPT-like models: at the last real token of a text, whatever pads it, causal or bidirectional.

transformers takes the rightmost token whose id is not the padding's, which is another one where EOS pads and a text ends in EOS,
and counts GPT-2's positions from the padding where that stands on the left. Here the attention mask alone says what is padding.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import SequenceClassifierOutputWithPast
from transformers.utils.generic import can_return_tuple

from fairtune.core.errors import ModelError
from fairtune.models.model_parts import base_model, cuda_of, evaluating

Attention = Literal["causal", "bidirectional"]
PROBE = 4
"""Tokens in the texts that show whether a model sees ahead."""


def sees_ahead(model: nn.Module) -> bool:
    """Whether a token changes the hidden state of one before it: True for BERT, False for GPT. Leaves the model as it is."""
    base = _base(model)
    embeddings: Any = base.get_input_embeddings()
    rows, device = int(embeddings.weight.shape[0]), embeddings.weight.device
    ids = (torch.arange(PROBE, device=device) + rows // 2).clamp(max=rows - 1).repeat(2, 1)
    ids[1, -1] = 0
    with evaluating(base), torch.no_grad(), torch.random.fork_rng(devices=cuda_of(base)):
        hidden: Tensor = base(input_ids=ids, attention_mask=torch.ones_like(ids))[0]
    earlier = hidden[:, :-1].float()
    noise = 32 * torch.finfo(hidden.dtype).eps * float(earlier.abs().max())
    return float((earlier[0] - earlier[1]).abs().max()) > noise


def classify_at_last_token(model: nn.Module, attention: Attention | None) -> Attention | None:
    """Make `model(**batch)` of a GPT-like classifier right for every padding; returns how it attends, None for a BERT-like one.

    The model keeps its tensors and its class's name. `config.is_causal` is transformers' own mark of bidirectional attention: a
    saved model has it, here and in plain transformers.

    Args:
        attention: None is the model's own, and leaves a model that is not GPT-like untouched.
    """
    if attention is None and not _scores(model):
        return None
    class_name, config = type(model).__name__, cast(Any, _base(model)).config
    own: Attention = "causal" if getattr(config, "is_causal", True) else "bidirectional"
    with _marked(config, None):  # by its architecture: asked to be causal, BERT would be
        gpt_like = not sees_ahead(model)
    if not gpt_like:
        if attention is None:
            return None
        raise ModelError(
            f"attention: {attention} is for GPT-like models; every token of {class_name} sees the whole text already. "
            "Leave `attention` out."
        )
    if not _scores(model):
        raise ModelError(
            f"attention: {attention} is not known for {class_name}, whose head is not a `score` of one token."
        )
    wanted = attention or own
    if wanted == "bidirectional":
        with _marked(config, False):
            works = sees_ahead(model)
        if not works:
            raise ModelError(
                f"attention: bidirectional does not work for {class_name}: transformers builds its causal mask in a way of its own."
                " Allowed for it: causal."
            )
    if wanted != own:
        config.is_causal = wanted == "causal"
    if not isinstance(model, LastTokenClassifier):
        model.__class__ = _at_last_token(cast(Any, type(model)))
    return wanted


class LastTokenClassifier(nn.Module):
    """What is put before a transformers class `...ForSequenceClassification` that has a base model and a head `score`."""

    @can_return_tuple  # type: ignore[untyped-decorator]
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Any = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool = False,
        **more: Any,
    ) -> SequenceClassifierOutputWithPast:
        model, base = cast(Any, self), base_model(self)
        given = input_ids if input_ids is not None else inputs_embeds
        if given is None:
            raise ValueError("either input_ids or inputs_embeds must be given")
        if past_key_values is not None:
            more["past_key_values"] = past_key_values
        last: Tensor | int = -1
        if attention_mask is not None and attention_mask.ndim == 2:
            real = attention_mask != 0
            own = real[:, -given.shape[1] :]
            last = (torch.arange(own.shape[1], device=own.device) * own).argmax(-1)
            padded_right = bool((real[:, :-1] >= real[:, 1:]).all())  # no real token comes after padding
            takes_positions = "position_ids" in inspect.signature(base.forward).parameters
            if not padded_right and position_ids is None and takes_positions:
                counted = (real.long().cumsum(-1) - 1).clamp(min=0)  # real tokens from 0; padding does not count
                position_ids = counted[:, -given.shape[1] :]
        if position_ids is not None:
            more["position_ids"] = position_ids
        outputs = base(
            input_ids=input_ids, inputs_embeds=inputs_embeds, attention_mask=attention_mask, use_cache=use_cache,
            return_dict=True, **more,
        )  # fmt: skip
        hidden: Tensor = outputs.last_hidden_state
        logits = model.score(hidden[torch.arange(len(hidden), device=hidden.device), last])
        loss = None
        if labels is not None:
            loss = model.loss_function(logits=logits, labels=labels, pooled_logits=logits, config=model.config)
        return SequenceClassifierOutputWithPast(
            loss=loss,
            logits=logits,
            past_key_values=outputs.get("past_key_values"),
            hidden_states=outputs.get("hidden_states"),
            attentions=outputs.get("attentions"),
        )


@cache
def _at_last_token(base_class: Any) -> type[nn.Module]:
    """The class by the same name, since transformers writes it into a saved model's config."""
    same = {"__module__": base_class.__module__, "__qualname__": base_class.__qualname__, "__doc__": base_class.__doc__}
    return type(base_class.__name__, (LastTokenClassifier, base_class), same)


def _scores(model: nn.Module) -> bool:
    return isinstance(getattr(model, "score", None), nn.Module)


def _base(model: nn.Module) -> Any:
    """The base model, also inside PEFT's wrapper; of an encoder-decoder the encoder."""
    unwrap = getattr(model, "get_base_model", None)
    base: Any = base_model(unwrap() if unwrap is not None else model)
    return base.get_encoder() if getattr(base.config, "is_encoder_decoder", False) else base


@contextmanager
def _marked(config: Any, causal: bool | None) -> Iterator[None]:
    """`config.is_causal` for a while; None is to be without it."""
    before = vars(config).pop("is_causal", None)
    if causal is not None:
        config.is_causal = causal
    try:
        yield
    finally:
        vars(config).pop("is_causal", None)
        if before is not None:
            config.is_causal = before
