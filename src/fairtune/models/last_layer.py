"""The last layer of a classifier, computed only for the token that its head reads: the first of a BERT, the last of a GPT.

Of a layer's twelve matrix products ten are then made for one token of each text. It is switched on only where a real pass shows
that the answers stay the same to rounding; everywhere else the model stays as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from fairtune.core.errors import ModelError
from fairtune.models.attention import attention_layers
from fairtune.models.causal_classifier import LastTokenClassifier
from fairtune.models.model_parts import cuda_of, evaluating, head_parameters
from fairtune.models.read_token import LAYER, ReadTokenLayer, SwappedClass, read_token_class, reading

LENGTHS = (6, 4, 3)
"""Tokens of the texts that show whether the answers stay the same."""
ROUNDING = 512
"""How many times the smallest step of a number type, against the largest answer, still counts as rounding."""


@dataclass(frozen=True)
class LastLayer:
    """For which tokens the last layer of a model is computed.

    Args:
        computed_for: the token that is read, or every token.
        why: why it is every token.
    """

    computed_for: Literal["first token", "last token", "every token"]
    why: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def narrow_last_layer(model: nn.Module) -> LastLayer:
    """Let a classifier compute its last layer for the token that it reads, if that is provably the same.

    Modules keep their names, tensors and classes' names. Calls that ask for hidden states, attentions or a cache, and calls of
    the base model alone, go the plain way.
    """
    try:
        classifier, name, attention = _find(model)
    except ModelError as error:
        return LastLayer("every token", str(error))
    last = isinstance(classifier, LastTokenClassifier) or getattr(classifier, "pooling", None) == "last"
    paddings = (False, True) if last else (False,)
    _switch_off(classifier, name)
    try:
        with _shaken_head(classifier):
            expected = [_answers(classifier, left) for left in paddings]
            layer = _switch_on(classifier, name, attention, last)
            found = [_answers(classifier, left) for left in paddings]
        if layer.calls != len(found):
            why = f"{type(layer).__name__} cannot be computed for one token"
        elif not all(_same(*pair) for pair in zip(expected, found, strict=True)):
            why = f"{type(classifier).__name__} reads more than one token"
        else:
            return LastLayer("last token" if last else "first token")
    except Exception as error:  # whatever an unknown architecture does: it trains as before
        why = f"{type(classifier).__name__}: {(str(error).strip().splitlines() or [type(error).__name__])[0]}"
    _switch_off(classifier, name)
    return LastLayer("every token", why)


def _find(model: nn.Module) -> tuple[nn.Module, str, str]:
    """The classifier in a model, the name of its last layer, and that of the attention in it.

    Raises:
        ModelError: there is none whose last layer could be narrowed.
    """
    classifier = next(
        (m for m in model.modules() if isinstance(m, PreTrainedModel) or "base_model_prefix" in vars(m)), model
    )
    class_name, config = type(classifier).__name__, getattr(classifier, "config", None)
    if not class_name.endswith("ForSequenceClassification"):
        raise ModelError(f"{class_name} is not a classifier of texts")
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(f"{class_name} is an encoder-decoder")
    if any(p.dtype not in (torch.float32, torch.float64) for p in classifier.parameters() if p.is_floating_point()):
        raise ModelError(f"{class_name} has weights in half precision, in which the proof would mean nothing")
    lists = {name: module for name, module in classifier.named_modules() if isinstance(module, nn.ModuleList)}
    names = [layer.name for layer in attention_layers(classifier)]
    around = max((name for name in lists if names[-1].startswith(f"{name}.")), key=len, default=None)
    if around is None:
        raise ModelError(f"{class_name} has no list of layers")
    name = f"{around}.{names[-1][len(around) + 1 :].partition('.')[0]}"
    inside = [other for other in names if other.startswith(f"{name}.")]
    if len(inside) != 1 or name != f"{around}.{len(lists[around]) - 1}":
        raise ModelError(f"{class_name} has no one attention in its last layer")
    return classifier, name, inside[0][len(name) + 1 :]


def _switch_on(classifier: nn.Module, name: str, attention: str, last: bool) -> ReadTokenLayer:
    layer = classifier.get_submodule(name)
    if not isinstance(layer, ReadTokenLayer):
        layer.__class__ = read_token_class(cast(Any, type(layer)))
    narrowed = cast(ReadTokenLayer, layer)
    narrowed.attention_name, narrowed.calls = attention, 0
    vars(classifier)[LAYER] = name
    if not last and not isinstance(classifier, FirstTokenClassifier):
        classifier.__class__ = _at_first_token(cast(Any, type(classifier)))
    return narrowed


def _switch_off(classifier: nn.Module, name: str) -> None:
    vars(classifier).pop(LAYER, None)
    layer = classifier.get_submodule(name)
    for attribute in ("attention_name", "calls", "place"):
        vars(layer).pop(attribute, None)
    for module in (classifier, layer):
        if isinstance(module, SwappedClass):
            cast(Any, module).__class__ = module.own_class()


class FirstTokenClassifier(SwappedClass):
    """What is put before the class of a classifier that reads the first token."""


@cache
def _at_first_token(base_class: Any) -> Any:
    def forward(self: nn.Module, *given: Any, **more: Any) -> Any:
        with reading(self, 0, more if len(given) <= 2 else {"output_hidden_states": True}):
            return base_class.forward(self, *given, **more)

    # Not by `wraps`: accelerate, when it unwraps a model, goes on to whatever a forward says that it wraps.
    vars(forward)["__signature__"] = inspect.signature(base_class.forward)
    return FirstTokenClassifier.before(base_class, forward=forward)


@torch.no_grad()
def _answers(classifier: nn.Module, left: bool) -> Tensor:
    """The logits of made texts of different lengths.

    Args:
        left: whether padding stands on the left.
    """
    model = cast(Any, classifier)
    parameter = next(classifier.parameters())
    config, device = model.config, parameter.device
    padding = getattr(config, "pad_token_id", None) or 0
    ids = (
        torch.arange(len(LENGTHS) * max(LENGTHS)).view(len(LENGTHS), -1) * 7 + config.vocab_size // 3
    ) % config.vocab_size
    ids[ids == padding] = (padding + 1) % config.vocab_size
    tokens = torch.arange(max(LENGTHS))
    mask = (tokens < torch.tensor(LENGTHS)[:, None]).long()
    mask = mask.flip(1) if left else mask
    ids[mask == 0] = padding
    with evaluating(classifier), torch.random.fork_rng(devices=cuda_of(classifier)):
        return model(input_ids=ids.to(device), attention_mask=mask.to(device)).logits.double()  # type: ignore[no-any-return]


@contextmanager
def _shaken_head(classifier: nn.Module) -> Iterator[None]:
    """Other weights in the head for a while, since one of zeros would answer the same whatever it reads."""
    names = head_parameters(classifier)
    before = {name: p.detach().clone() for name, p in classifier.named_parameters() if name in names}
    noise = torch.Generator().manual_seed(0)
    try:
        with torch.no_grad():
            for name, was in before.items():
                classifier.get_parameter(name).add_(0.1 * torch.randn(was.shape, generator=noise).to(was))
        yield
    finally:
        with torch.no_grad():
            for name, was in before.items():
                classifier.get_parameter(name).copy_(was)


def _same(expected: Tensor, found: Tensor) -> bool:
    most = ROUNDING * torch.finfo(torch.float32).eps * float(expected.abs().max())
    return expected.shape == found.shape and float((expected - found).abs().max()) <= most
