"""Two ways through an attention module of transformers: up to its keys and values, and on with keys and values that are given."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
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


class _Gathered(Exception):  # noqa: N818 - it is no error
    """Ends the first pass, with the keys and values of all tokens."""

    def __init__(self, key: Tensor, value: Tensor) -> None:
        super().__init__()
        self.key, self.value = key, value


class AttentionPasses:
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


def _idle(name: str, module: nn.Module, hidden: Tensor) -> Tensor:  # noqa: ARG001
    """Zeros in the place of outputs that nobody uses."""
    plain = cast(Any, module).get_base_layer() if hasattr(module, "get_base_layer") else module
    return hidden.new_zeros(1).expand(*hidden.shape[:-1], len(rows_of(plain)))


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
