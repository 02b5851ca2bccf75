"""How deep each parameter of a model lies: in its embeddings, in layer i, above the layers, in the head.

Layers are what a base model keeps in numbered lists. Where all else belongs is seen, not guessed from names: two tokens go
through the base model, and what is first called before the first layer lies below it, what is called after the last above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import nn

from fairtune.core.errors import ModelError
from fairtune.models.model_parts import only_base, run_tokens

Key = tuple[str, int]
"""A layer: where its list hangs, and its number there."""
PARTS = ("embeddings", "lower", "upper", "head")
"""Parts that every model has, from below: embeddings, half of the layers, the other half, everything above the layers."""


@dataclass(frozen=True)
class Depths:
    """Where the parameters of a model lie.

    Args:
        layers: how many there are; shared ones count once.
        of: by the parameter's id: -1 in the embeddings, 0 ... in a layer, `above` them, in the `head`.
    """

    layers: int
    of: dict[int, int]

    @property
    def above(self) -> int:
        return self.layers

    @property
    def head(self) -> int:
        return self.layers + 1

    def name(self, depth: int) -> str:
        """The place in words."""
        return {-1: "embeddings", self.above: "above the layers", self.head: "head"}.get(depth, f"layer {depth}")

    def part(self, parameter: nn.Parameter) -> str:
        """Which of `PARTS` a parameter lies in; of an odd number of layers the upper half has one more."""
        depth = self.of[id(parameter)]
        return PARTS[0 if depth < 0 else 3 if depth >= self.above else 1 if depth < self.layers // 2 else 2]


def find_depths(model: nn.Module) -> Depths:
    """Every parameter's depth, also inside PEFT's and other wrappers. The head is all that is outside the base model.

    A decoder's layers follow the encoder's. A module that is first called between two layers goes with the one before it.
    """
    base = only_base(model)
    keys, calls = _keys(base), _first_calls(base)
    starts: dict[Key, int] = {}
    for name in sorted(keys.keys() & calls.keys(), key=calls.__getitem__):
        starts.setdefault(keys[name], calls[name])
    if not starts:
        raise ModelError(f"{type(base).__name__}: it has no numbered layers (an nn.ModuleList whose members it calls).")
    order = list(starts)
    end = max(place for name, place in calls.items() if any(prefix in keys for prefix in (name, *_prefixes(name))))
    found: dict[int, int] = {}
    for name, parameter in base.named_parameters():
        key = next((keys[prefix] for prefix in _prefixes(name) if prefix in keys), None)
        if key in starts:
            found[id(parameter)] = order.index(key)
            continue
        called = next(calls[prefix] for prefix in (*_prefixes(name), "") if prefix in calls)
        below = sum(start < called for start in starts.values())
        found[id(parameter)] = below if called > end else below - 1
    head = len(order) + 1
    return Depths(len(order), {id(p): found.get(id(p), head) for p in model.parameters()})


def _keys(base: nn.Module) -> dict[str, Key]:
    """The layers by their modules' names. Lists side by side that are equally long hold parts of the same layers."""
    keys: dict[str, Key] = {}
    for name, module in base.named_modules():
        if isinstance(module, nn.ModuleList) and not any(prefix in keys for prefix in _prefixes(name)):
            layers = f"{name.rpartition('.')[0]} x {len(module)}"
            keys.update({f"{name}.{number}": (layers, number) for number in range(len(module))})
    return keys


def _prefixes(name: str) -> Iterator[str]:
    """The names of the modules around something, from the innermost."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _first_calls(base: nn.Module) -> dict[str, int]:
    """In which order the modules of a base model are first called; those that never are, are left out."""
    calls: dict[str, int] = {}

    def note(name: str) -> Callable[..., None]:
        def look(*_: object) -> None:
            calls.setdefault(name, len(calls))

        return look

    hooks = [module.register_forward_pre_hook(note(name)) for name, module in base.named_modules()]
    try:
        run_tokens(base, 2)
    finally:
        for hook in hooks:
            hook.remove()
    return calls
