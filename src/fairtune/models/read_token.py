"""A transformer layer computed for one token of each text: the last layer of a classifier that reads no other.

Attention needs the keys and values of all tokens; queries, what attention gives, and the feed-forward are each token's own. So
the layer's own forward is called twice: with all tokens, up to where attention begins, which gives keys and values; then with
the read token alone, whose queries meet them. Nothing of the layer is written anew: norms, rotations, adapters and dropout are
where its architecture has them.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from fairtune.models.attention_passes import AttentionPasses
from fairtune.models.read_projection import Place, pick

IMPLEMENTATIONS = ("sdpa", "eager")
PER_TOKEN = ("position_embeddings", "position_ids")
"""What layers are given besides the states that has an entry for every token; masks are cut where attention is computed."""
ASKED = ("output_hidden_states", "output_attentions", "output_router_logits", "use_cache")
_guard, _locks = threading.Lock(), WeakKeyDictionary[nn.Module, "threading.RLock"]()
LAYER = "_read_layer"
"""Attribute of a classifier: the name of the layer in it that is computed for one token."""


class SwappedClass(nn.Module):
    """What is put before a class to make one by the same name, since transformers goes by names and writes them into configs.

    Copied or pickled, a module is of its own class again.
    """

    @classmethod
    def before(cls, own: Any, **more: Any) -> type[Any]:
        same = {"__module__": own.__module__, "__qualname__": own.__qualname__, "__doc__": own.__doc__}
        return type(own.__name__, (cls, own), {**same, **more})

    @classmethod
    def own_class(cls) -> type[nn.Module]:
        own: type[nn.Module] = cls.__bases__[1]
        return own

    def __reduce__(self) -> Any:
        return _make, (self.own_class(),), self.__dict__


class ReadTokenLayer(SwappedClass):
    """What is put before a transformers layer class. Without a place it is that class.

    Attributes:
        place: the token that is read, while the classifier is called; None is all.
        attention_name: of its attention module in it.
        calls: how often it was computed for one token.
    """

    place: Place | None = None
    attention_name = ""
    calls = 0

    def forward(self, *given: Any, **more: Any) -> Any:
        place = self.place
        if place is None:
            return super().forward(*given, **more)
        bound = _signature(cast(Any, self.own_class())).bind(self, *given, **more).arguments
        named = {
            **{name: value for name, value in bound.items() if name not in ("self", "kwargs")},
            **bound.get("kwargs", {}),
        }
        hidden: Tensor = named["hidden_states"]
        attention = cast(Any, self.get_submodule(self.attention_name))
        if not _is_known(named, hidden):
            return super().forward(*given, **more)
        passes = AttentionPasses(attention, place)
        keys_values = passes.first(partial(super().forward, **named))
        one = {**named, "hidden_states": pick(hidden, place)}
        one |= {name: _picked(one[name], place) for name in PER_TOKEN if one.get(name) is not None}
        found = passes.second(partial(super().forward, **one), keys_values)
        self.calls += 1
        return _to_all(found, hidden.shape[1])


def _make(own_class: Any) -> Any:
    return own_class.__new__(own_class)


@contextmanager
def reading(classifier: nn.Module, place: Place, asked: Mapping[str, Any]) -> Iterator[None]:
    """Within it, the classifier's last layer is computed for one token, if that was switched on and nobody wants the others.

    Args:
        asked: what the classifier was called with.
    """
    layer = read_layer(classifier)
    if layer is None:
        yield
        return
    with _lock_of(classifier):  # the place is the layer's: a second thread waits, whatever it wants
        layer.place = place if _reads_one(cast(Any, classifier), layer, asked) else None
        try:
            yield
        finally:
            layer.place = None


def _lock_of(classifier: nn.Module) -> threading.RLock:
    """A classifier's lock; not an attribute, since locks can be neither copied nor pickled."""
    with _guard:
        return _locks.setdefault(classifier, threading.RLock())


def read_layer(classifier: nn.Module) -> ReadTokenLayer | None:
    """The layer of a classifier that is computed for one token, if there is one."""
    name = vars(classifier).get(LAYER)
    found = None if name is None else classifier.get_submodule(name)
    return found if isinstance(found, ReadTokenLayer) else None


@cache
def read_token_class(layer_class: Any) -> Any:
    return ReadTokenLayer.before(layer_class)


def _reads_one(classifier: Any, layer: Any, asked: Mapping[str, Any]) -> bool:
    """Whether this call may leave out the last layer's other tokens."""
    config = classifier.config
    if any(asked.get(name, name != "use_cache" and getattr(config, name, False)) for name in ASKED):
        return False
    if asked.get("past_key_values") is not None or getattr(config, "_attn_implementation", None) not in IMPLEMENTATIONS:
        return False
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return False
    if layer.training and getattr(layer, "gradient_checkpointing", False):
        return False
    return not any(_global_hooks()) and not any(map(is_watched, _from_last_layer_on(classifier)))


def _from_last_layer_on(classifier: nn.Module) -> Iterator[nn.Module]:
    """The last layer, what holds it and what comes after it: all but embeddings, earlier layers and the classifier itself."""
    around, _, number = vars(classifier)[LAYER].rpartition(".")
    earlier = tuple(f"{around}.{before}." for before in range(int(number)))
    for name, module in classifier.named_modules():
        if name and not f"{name}.".startswith(earlier) and "embed" not in name and not isinstance(module, nn.Embedding):
            yield module


def _global_hooks() -> Iterator[Any]:
    """What looks at all modules of the process, besides torch's own counters."""
    modules = torch.nn.modules.module
    for name in (
        "_global_forward_hooks",
        "_global_forward_pre_hooks",
        "_global_backward_hooks",
        "_global_backward_pre_hooks",
    ):
        hooks = getattr(modules, name, None) or {}
        yield from (hook for hook in hooks.values() if not str(getattr(hook, "__module__", "")).startswith("torch."))


def is_watched(module: nn.Module) -> bool:
    """Whether somebody looks at what goes through a module; transformers' own recorders look only when asked."""
    hooks = (
        *module._forward_hooks.values(),
        *module._forward_pre_hooks.values(),
        *module._backward_hooks.values(),
        *module._backward_pre_hooks.values(),
    )
    return any(getattr(hook, "__name__", "") != "output_capturing_hook" for hook in hooks)


@cache
def _signature(layer_class: Any) -> inspect.Signature:
    return inspect.signature(layer_class.forward)


def _is_known(named: Mapping[str, Any], hidden: Tensor) -> bool:
    """Whether all that a layer is given is cut to one token, or is the same for all, and nothing of it is kept."""
    tensors = {name for name, value in named.items() if isinstance(value, Tensor)}
    others = tensors - {"hidden_states", "attention_mask", "cache_position", *PER_TOKEN}
    caches = [named.get(name) for name in ("past_key_values", "layer_past")]
    mask = named.get("attention_mask")
    cut = mask is None or (isinstance(mask, Tensor) and mask.ndim == 4)
    return hidden.ndim == 3 and cut and not others and caches == [None, None]


def _picked(value: Any, place: Place) -> Any:
    return tuple(pick(part, place) for part in value) if isinstance(value, tuple) else pick(value, place)


def _to_all(found: Any, tokens: int) -> Any:
    """The read token's state in the place of every token's, as a view: what comes after the layer may count tokens."""
    if isinstance(found, tuple):
        return _to_all(found[0], tokens), *found[1:]
    return found.expand(-1, tokens, -1)
