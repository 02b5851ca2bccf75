"""A transformer layer computed for one token of each text: the last layer of a classifier that reads no other.

Attention needs the keys and values of all tokens; queries, what attention gives, and the feed-forward are each token's own. So the layer's
own forward is called twice: with all tokens, up to where attention begins, which gives keys and values; then with the read token alone,
whose queries meet them. Nothing of the layer is written anew: norms, rotations, adapters and dropout are where its architecture has them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from fairtune.models.attention import fused_parts
from fairtune.models.attention_layouts import layout_of
from fairtune.models.read_projection import Place, pick, project
from fairtune.models.split_projection import rows_of

INTERFACE = "fairtune_read_token"
"""The name by which transformers' attention modules find `_attend`."""
IMPLEMENTATIONS = ("sdpa", "eager")
PER_TOKEN = ("position_embeddings", "position_ids")
"""What layers are given besides the states that has an entry for every token; masks are cut where attention is computed."""
ASKED = ("output_hidden_states", "output_attentions", "output_router_logits", "use_cache")
LAYER = "_read_layer"
"""Attribute of a classifier: the name of the layer in it that is computed for one token."""


class ReadTokenLayer(nn.Module):
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
        bound = _signature(type(self).__mro__[2]).bind(self, *given, **more).arguments
        named = {**{name: value for name, value in bound.items() if name not in ("self", "kwargs")}, **bound.get("kwargs", {})}
        hidden: Tensor = named["hidden_states"]
        attention = cast(Any, self.get_submodule(self.attention_name))
        if not _is_known(named, hidden):
            return super().forward(*given, **more)
        passes = _Passes(attention, place)
        keys_values = passes.first(partial(super().forward, **named))
        one = {**named, "hidden_states": pick(hidden, place)}
        one |= {name: _picked(one[name], place) for name in PER_TOKEN if one.get(name) is not None}
        found = passes.second(partial(super().forward, **one), keys_values)
        self.calls += 1
        return _to_all(found, hidden.shape[1])


@contextmanager
def reading(classifier: nn.Module, place: Place, asked: Mapping[str, Any]) -> Iterator[None]:
    """Within it, the classifier's last layer is computed for one token, if that was switched on and nobody wants the others.

    Args:
        asked: what the classifier was called with.
    """
    layer = read_layer(classifier)
    if layer is None or not _reads_one(cast(Any, classifier), layer, asked):
        yield
        return
    layer.place = place
    try:
        yield
    finally:
        layer.place = None


def read_layer(classifier: nn.Module) -> ReadTokenLayer | None:
    """The layer of a classifier that is computed for one token, if there is one."""
    name = vars(classifier).get(LAYER)
    found = None if name is None else classifier.get_submodule(name)
    return found if isinstance(found, ReadTokenLayer) else None


@cache
def read_token_class(layer_class: Any) -> type[ReadTokenLayer]:
    """The class by the same name, so that nobody who looks for layers by their class misses it."""
    same = {"__module__": layer_class.__module__, "__qualname__": layer_class.__qualname__, "__doc__": layer_class.__doc__}
    return type(layer_class.__name__, (ReadTokenLayer, layer_class), same)


def _reads_one(classifier: Any, layer: Any, asked: Mapping[str, Any]) -> bool:
    """Whether this call may leave out the last layer's other tokens."""
    config = classifier.config
    if any(asked.get(name, name != "use_cache" and getattr(config, name, False)) for name in ASKED):
        return False
    if asked.get("past_key_values") is not None or getattr(config, "_attn_implementation", None) not in IMPLEMENTATIONS:
        return False
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or (layer.training and getattr(layer, "gradient_checkpointing", False)):
        return False
    around = [module for name, module in classifier.named_modules() if name and vars(classifier)[LAYER].startswith(name)]
    return not any(_is_watched(module) for module in (*around, *layer.modules()))


def _is_watched(module: nn.Module) -> bool:
    """Whether somebody looks at what goes through a module; transformers' own recorders look only when asked."""
    hooks = (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    return any(getattr(hook, "__name__", "") != "output_capturing_hook" for hook in hooks)


class _Gathered(Exception):  # noqa: N818 - it is no error
    """Ends the first pass, with the keys and values of all tokens."""

    def __init__(self, key: Tensor, value: Tensor) -> None:
        super().__init__()
        self.key, self.value = key, value


class _Passes:
    """The two ways through an attention module.

    Attributes:
        modules: its projections, by attribute, with the parts that they hold.
        outputs: what fused ones gave in the first pass, where the queries of the read token are in it.
    """

    def __init__(self, attention: Any, place: Place) -> None:
        self.attention, self.place = attention, place
        layout = layout_of(attention)
        assert layout is not None, "it was found by its layout"
        names = {name.removesuffix("?"): parts for name, parts in layout.projections.items()}
        self.modules = {name: parts for name, parts in names.items() if getattr(attention, name, None) is not None}
        self.outputs: dict[str, Tensor] = {}

    def first(self, layer: Callable[[], Any]) -> tuple[Tensor, Tensor]:
        """Keys and values of all tokens."""

        def end(module: Any, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> Any:  # noqa: ARG001
            raise _Gathered(key, value)

        with self._instead(end, {"q": _idle, "mixed": self._project}):
            try:
                layer()
            except _Gathered as gathered:
                return gathered.key, gathered.value
        raise RuntimeError(f"{type(self.attention).__name__} does not attend the way transformers lets one choose")

    def second(self, layer: Callable[[], Any], keys_values: tuple[Tensor, Tensor]) -> Any:
        """What the layer gives for the read token."""
        chosen = self.attention.config._attn_implementation
        eager = chosen == "eager"
        own = sys.modules[type(self.attention).__module__]
        compute = own.eager_attention_forward if eager else ALL_ATTENTION_FUNCTIONS[chosen]

        def attend(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, *given: Any, **more: Any) -> Any:  # noqa: ARG001
            row = _row(mask, self.place, keys_values[0], causal=not eager and _is_causal(module, more))
            return compute(module, query, *keys_values, row, *given, **more)

        with self._instead(attend, {"": _idle, "mixed": self._take}):
            return layer()

    def _project(self, name: str, module: nn.Module, hidden: Tensor) -> Tensor:
        with _replaced(module, None):
            self.outputs[name] = project(module, hidden, self.place, *fused_parts(self.attention, name))
        return self.outputs[name]

    def _take(self, name: str, module: nn.Module, hidden: Tensor) -> Tensor:  # noqa: ARG002
        return pick(self.outputs[name], self.place)

    @contextmanager
    def _instead(self, attend: Callable[..., Any], forwards: Mapping[str, Callable[..., Tensor]]) -> Iterator[None]:
        """Let other functions attend, and compute the projections of queries ("q"), of other parts (""), and of both ("mixed")."""
        with ExitStack() as stack:
            stack.enter_context(_attending(self.attention, attend))
            for name, parts in self.modules.items():
                kind = "q" if parts == "q" else "mixed" if "q" in parts else ""
                if kind in forwards:
                    module = getattr(self.attention, name)
                    stack.enter_context(_replaced(module, partial(forwards[kind], name, module)))
            yield


@contextmanager
def _replaced(module: nn.Module, forward: Callable[..., Any] | None) -> Iterator[None]:
    """A module that computes something else for a while; None is what its class computes."""
    before = vars(module).pop("forward", None)
    if forward is not None:
        vars(module)["forward"] = forward
    try:
        yield
    finally:
        vars(module).pop("forward", None)
        if before is not None:
            vars(module)["forward"] = before


@contextmanager
def _attending(attention: Any, compute: Callable[..., Any]) -> Iterator[None]:
    """An attention module that lets `compute` attend for a while."""
    config = attention.config
    attention.config = _Config(config, compute)
    try:
        yield
    finally:
        attention.config = config


class _Config:
    """A model's config that names another implementation of attention."""

    _attn_implementation = INTERFACE

    def __init__(self, config: Any, compute: Callable[..., Any]) -> None:
        self.config, self.compute = config, compute

    def __getattr__(self, name: str) -> Any:
        return getattr(self.config, name)


def _attend(module: Any, *given: Any, **more: Any) -> Any:
    return module.config.compute(module, *given, **more)


ALL_ATTENTION_FUNCTIONS.register(INTERFACE, _attend)


@cache
def _signature(layer_class: Any) -> inspect.Signature:
    return inspect.signature(layer_class.forward)


def _is_known(named: Mapping[str, Any], hidden: Tensor) -> bool:
    """Whether all that a layer is given is cut to one token, or is the same for all."""
    others = {name for name, value in named.items() if isinstance(value, Tensor)} - {"hidden_states", "attention_mask", *PER_TOKEN}
    mask = named.get("attention_mask")
    return (
        hidden.ndim == 3 and not others - {"cache_position"} and (mask is None or (isinstance(mask, Tensor) and mask.ndim == 4))
    )


def _idle(name: str, module: nn.Module, hidden: Tensor) -> Tensor:  # noqa: ARG001
    """Zeros in the place of outputs that nobody uses."""
    plain: Any = module.get_base_layer() if hasattr(module, "get_base_layer") else module
    return hidden.new_zeros(1).expand(*hidden.shape[:-1], len(rows_of(plain)))


def _picked(value: Any, place: Place) -> Any:
    return tuple(pick(part, place) for part in value) if isinstance(value, tuple) else pick(value, place)


def _is_causal(module: Any, more: Mapping[str, Any]) -> bool:
    asked = more.get("is_causal")
    return bool(getattr(module, "is_causal", True) if asked is None else asked)


def _row(mask: Tensor | None, place: Place, keys: Tensor, causal: bool) -> Tensor | None:
    """The mask of the read tokens' queries."""
    if mask is not None:
        return mask if mask.shape[2] == 1 else pick(mask.transpose(1, 2), place).transpose(1, 2)
    if not causal or (isinstance(place, int) and place == -1):
        return None
    tokens = torch.arange(keys.shape[2], device=keys.device)
    last = place.view(-1, 1, 1, 1) if isinstance(place, Tensor) else place
    return (tokens <= last).expand(len(keys), 1, 1, -1)


def _to_all(found: Any, tokens: int) -> Any:
    """The read token's state in the place of every token's, as a view: what comes after the layer may count tokens."""
    if isinstance(found, tuple):
        return _to_all(found[0], tokens), *found[1:]
    return found.expand(-1, tokens, -1)
