"""Finding the query, key and value projections of a model's attention layers, whatever its architecture calls them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from fairtune.core.errors import ModelError
from fairtune.models.attention_layouts import AttentionLayout, layout_of
from fairtune.models.attention_proof import AttentionProof, prove
from fairtune.models.declarations import Declared
from fairtune.models.split_projection import (
    SplitProjection,
    is_projection,
    part_rows,
    rows_of,
)

HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head")
KEY_HEADS = ("num_key_value_heads", "num_kv_heads", "kv_heads")
WIDTHS = ("head_dim", "attention_head_size", "key_value_proj_dim", "d_head")
"""What architectures call the number of query heads, that of key heads, and the width of one."""


@dataclass(frozen=True)
class Projection:
    """The query, key or value projection of an attention layer: some or all rows of a linear map.

    Args:
        part: q, k or v.
        name: of the module inside the model that holds it; a fused one holds several.
        heads: of this part; keys may have fewer than queries.
        rows: which rows of the module are this part's; None for all.
        home: the weight of the checkpoint that holds it, whole or cut, and which of its rows.
    """

    part: str
    name: str
    module: nn.Module
    heads: int
    rows: Tensor | None
    home: Declared

    def weight(self) -> Tensor:
        """Its weight as [heads x head_dim, hidden]: a copy, detached."""
        every = rows_of(self.module).detach()
        return every.clone() if self.rows is None else every[self.rows.to(every.device)]

    def bias(self) -> Tensor | None:
        """Its bias, a copy, or None."""
        bias = getattr(self.module, "bias", None)
        if not isinstance(bias, Tensor):
            return None
        return bias.detach().clone() if self.rows is None else bias.detach()[self.rows.to(bias.device)]

    def write(self, new: Tensor) -> None:
        """Replace its weight, leaving the module's other rows and the bias as they are."""
        every = rows_of(self.module).detach()
        rows = slice(None) if self.rows is None else self.rows.to(every.device)
        every[rows] = new.to(every)

    @property
    def parameters(self) -> int:
        bias = self.bias()
        return self.weight().numel() + (0 if bias is None else bias.numel())

    @property
    def trains(self) -> bool:
        return any(p.requires_grad for p in self.module.parameters())


@dataclass(frozen=True)
class AttentionLayer:
    """One attention layer.

    Args:
        name: of the attention module inside the model.
        block: number of the transformer block it belongs to, from 0; an encoder's blocks come before a decoder's.
    """

    name: str
    block: int
    projections: tuple[Projection, ...]

    def of(self, parts: str) -> list[Projection]:
        return [projection for projection in self.projections if projection.part in parts]


@dataclass(frozen=True)
class _Fused:
    """A projection module as an attention layer holds it."""

    name: str
    module: nn.Module
    parts: str
    heads: dict[str, int]
    interleaved: bool

    @property
    def groups(self) -> int:
        return min(self.heads[part] for part in self.parts) if self.interleaved else 1

    @property
    def sizes(self) -> dict[str, int]:
        """Rows of each part within a group."""
        if isinstance(self.module, SplitProjection):
            return self.module.sizes
        head_dim = len(rows_of(self.module)) // sum(self.heads[part] for part in self.parts)
        return {part: self.heads[part] // self.groups * head_dim for part in self.parts}

    def projections(self) -> list[Projection]:
        """The parts it holds, in their order, also when it was cut."""
        if not isinstance(self.module, SplitProjection):
            return list(self._of(self.module, self.name, self.sizes))
        found: list[Projection] = []
        for name in self.module.names:
            sizes = {part: size for part, size in self.module.sizes.items() if part in name}
            found += self._of(_plain(getattr(self.module, name)), f"{self.name}.{name}", sizes)
        return sorted(found, key=lambda projection: self.parts.index(projection.part))

    def _of(self, module: nn.Module, name: str, sizes: dict[str, int]) -> Iterator[Projection]:
        if len(sizes) == 1:
            (part,) = sizes
            yield Projection(part, name, module, self.heads[part], None, self._home(part))
            return
        for part, rows in part_rows(sizes, self.groups, tuple(sizes)).items():
            yield Projection(part, name, module, self.heads[part], rows, self._home(part))

    def _home(self, part: str) -> Declared:
        """Where a part is in the checkpoint's weight, of which a cut projection keeps the layout in its state dict."""
        turned = self.module.transposed if isinstance(self.module, SplitProjection) else isinstance(self.module, Conv1D)
        rows = None if len(self.parts) == 1 else part_rows(self.sizes, self.groups, (part,))[part]
        return Declared(f"{self.name}.weight", rows, dim=1 if turned else 0)


def attention_layers(model: nn.Module) -> list[AttentionLayer]:
    """Every attention layer of a model that text reaches, in the order of the model.

    Layers without softmax attention, as recurrent hybrids have, are none; nor are those that only images or sounds reach.
    """
    found = _attention_modules(model)
    blocks = _numbered(name for name, _, _ in found)
    return [
        AttentionLayer(name, blocks[block_of(name)], tuple(part for fused in modules for part in fused.projections()))
        for name, _, modules in found
    ]


def freeze(model: nn.Module, blocks: set[int], parts: str) -> None:
    """Freeze the parts (`q`, `k`, `qk`) of the attention layers in these blocks, weights and biases.

    A fused projection is cut, so that what is frozen costs no gradient and no optimizer state, and is never decayed.
    """
    found = _attention_modules(model)
    numbers = _numbered(name for name, _, _ in found)
    for name, attention, modules in found:
        for fused in modules if numbers[block_of(name)] in blocks else ():
            frozen = "".join(part for part in fused.parts if part in parts)
            if frozen == fused.parts:
                for parameter in fused.module.parameters(recurse=isinstance(fused.module, SplitProjection)):
                    parameter.requires_grad_(False)
            elif isinstance(fused.module, SplitProjection):
                if frozen and fused.module.names[0] != frozen:
                    raise ModelError(
                        f"{fused.name}: its parts '{fused.module.names[0]}' are frozen already; freeze all parts in one go."
                    )
            elif frozen:
                attribute = fused.name.rpartition(".")[2]
                if getattr(attention, attribute) is not fused.module:
                    raise ModelError(
                        f"{fused.name}: an adapter wraps this fused projection; freeze its parts before adding adapters."
                    )
                setattr(attention, attribute, SplitProjection(fused.module, fused.sizes, fused.groups, frozen))


def block_of(name: str) -> str:
    """The transformer block a module belongs to: its name up to the first number, `encoder.layer.3`."""
    found = re.match(r"(.*?\.)?\d+(?=\.|$)", name)
    return found.group() if found else ""


def block_numbers(model: nn.Module) -> dict[str, int]:
    """The transformer blocks that hold attention, numbered in the order of the model."""
    return _numbered(name for name, _, _ in _attention_modules(model))


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {block: number for number, block in enumerate(dict.fromkeys(map(block_of, names)))}


def _attention_modules(model: nn.Module) -> list[tuple[str, nn.Module, list[_Fused]]]:
    """Every attention module with its projection modules."""
    known = {name: (module, layout) for name, module in model.named_modules() if (layout := layout_of(module))}
    unknown = [(name, module) for name, module in model.named_modules() if _looks_unknown(name, module, known)]
    if unknown and known:
        proof = AttentionProof(model)
        unknown = [(name, module) for name, module in unknown if proof.reaches(module)]
    if unknown or not known:
        raise ModelError(_unknown_layout(model, unknown))
    modules = {
        name: [
            (f"{name}.{attribute.removesuffix('?')}".lstrip("."), _plain(inner), parts)
            for attribute, parts in layout.projections.items()
            if (inner := getattr(module, attribute.removesuffix("?"), None)) is not None
        ]
        for name, (module, layout) in known.items()
    }
    unproven = {
        name: (module, *(inner for _, inner, part in modules[name] if part in "qk"))
        for name, (module, layout) in known.items()
        if not layout.proven
    }
    idle = unproven.keys() - prove(model, unproven)
    if not known.keys() - idle:
        raise ModelError(_unknown_layout(model, []))
    found = []
    for name, (module, layout) in known.items():
        if name not in idle:
            for where, inner, _ in modules[name]:
                _require_weights(where, inner)
            heads = _heads(name, module, layout, {parts: inner for _, inner, parts in reversed(modules[name])})
            found.append((name, module, [_Fused(*held, heads, layout.interleaved) for held in modules[name]]))
    return found


def _plain(module: Any) -> Any:
    """The projection inside an adapter's wrapper (PEFT), or the module itself."""
    return module.get_base_layer() if hasattr(module, "get_base_layer") else module


def _require_weights(where: str, module: nn.Module) -> None:
    if isinstance(module, SplitProjection):
        return
    if not is_projection(module) or not rows_of(module).is_floating_point() or rows_of(module).ndim != 2:
        raise ModelError(
            f"{where}: a {type(module).__name__} is not a linear map with plain weights (is the model quantised?); "
            "load the model in fp32, bf16 or fp16."
        )


def _heads(name: str, module: nn.Module, layout: AttentionLayout, held: Mapping[str, nn.Module]) -> dict[str, int]:
    """How many heads each part has: by the names that the layout gives, else by the usual ones and the projections' shapes."""

    def look_up(*attributes: str) -> int | None:
        holders = (module, getattr(module, "config", None))
        every = (getattr(holder, attribute, None) for holder in holders for attribute in attributes)
        return next((found for found in every if isinstance(found, int)), None)

    usual = (layout.heads,) if layout.heads else HEADS
    queries = look_up(*usual)
    keys = look_up(layout.key_heads) if layout.key_heads else queries
    if not queries or not keys:
        raise ModelError(
            f"{name}: neither {type(module).__name__} nor its config has a number called "
            f"'{' or '.join(usual if not queries else [layout.key_heads])}'; describe it with fairtune.register_attention."
        )
    if not layout.heads and {"q", "k"} <= held.keys():
        rows = {part: len(rows_of(held[part])) for part in "qk"}
        width = look_up(*WIDTHS) or rows["q"] // queries
        keys = rows["k"] // width
        if rows["q"] != queries * width or rows["k"] != keys * width:
            raise ModelError(
                f"{name}: {queries} heads of {width} do not fit queries of {rows['q']} and keys of {rows['k']} rows; describe "
                f"{type(module).__name__} with fairtune.register_attention."
            )
    elif not layout.heads:
        keys = look_up(*KEY_HEADS) or queries
    return {"q": queries, "g": queries, "k": keys, "v": keys}


def _looks_unknown(name: str, module: nn.Module, known: Iterable[str]) -> bool:
    """An attention module with linear maps of its own that is neither known nor around or inside a known one."""
    if "attention" not in type(module).__name__.lower() or len(_linear_children(module)) < 2:
        return False
    return not any(
        f"{other}.".startswith(f"{name}.") or f"{name}.".startswith(f"{other}.") or not name for other in known
    )


def _linear_children(module: nn.Module) -> dict[str, Tensor]:
    return {name: rows_of(child) for name, child in module.named_children() if is_projection(child)}


def _unknown_layout(model: nn.Module, unknown: list[tuple[str, nn.Module]]) -> str:
    if not unknown:
        return (
            f"{type(model).__name__}: no attention layer with linear projections was found. If it has one, describe it with "
            "fairtune.register_attention(CLASS, {ATTRIBUTE: PARTS}, heads=ATTRIBUTE)."
        )
    name, module = unknown[0]
    children = ", ".join(f"{child} [{w.shape[0]} x {w.shape[1]}]" for child, w in _linear_children(module).items())
    return (
        f"{type(model).__name__}: attention of unknown layout: {type(module).__name__} at {name} with {children}. Describe which "
        f'attribute holds which parts, such as fairtune.register_attention("{type(module).__name__}", {{"wq": "q", '
        '"wkv": "kv"}, heads="num_attention_heads"), and try again.'
    )
