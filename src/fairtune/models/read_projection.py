"""A fused projection where queries are needed for one token of each text only, and keys and values for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers.pytorch_utils import Conv1D

from fairtune.models.split_projection import SplitProjection, is_projection, part_rows, rows_of

Rows = slice | Tensor
Place = int | Tensor
"""The token of a text that is read: the same one in all texts, or one number for each."""


def pick(states: Tensor, place: Place) -> Tensor:
    """One token of each text, of [texts, tokens, ...]; a single text stands for all.

    In memory of its own: of a view, torch multiplies by one kernel where the weight trains and by another where it is frozen.
    """
    if isinstance(place, int):
        return states[:, place : place + 1 or None].contiguous()
    if len(states) != len(place):
        states = states.expand(len(place), *states.shape[1:])
    return states[torch.arange(len(place), device=states.device), place].unsqueeze(1)


def project(module: nn.Module, hidden: Tensor, place: Place, sizes: dict[str, int], groups: int) -> Tensor:
    """What a fused projection gives, with queries at the read tokens only; elsewhere they are 0.

    Args:
        sizes: rows of each part within a group, in their order.
        groups: how often that order repeats in the rows.
    """
    pieces, weights, biases = _pieces(module, sizes, groups)
    if not pieces:
        return module(hidden)  # type: ignore[no-any-return]  # an adapter wraps it: its dropout is the same for all parts
    found: Tensor = _ReadLinear.apply(hidden, place, pieces, *weights, *biases)  # type: ignore[no-untyped-call]
    return found


@dataclass(frozen=True)
class _Piece:
    """Some outputs of a fused projection.

    Args:
        columns: which outputs.
        source: number of the weight they come from.
        rows: of that weight.
        read: whether they are needed for the read token only.
    """

    columns: Rows
    source: int
    rows: Rows
    read: bool


def _pieces(
    module: nn.Module, sizes: dict[str, int], groups: int
) -> tuple[list[_Piece], list[Tensor], list[Tensor | None]]:
    cut = module.names if isinstance(module, SplitProjection) else ("".join(sizes),)
    sources: list[Any] = [getattr(module, name) for name in cut] if isinstance(module, SplitProjection) else [module]
    if not all(is_projection(source) and type(source) in (nn.Linear, Conv1D) for source in sources):
        return [], [], []
    pieces = []
    for number, held in enumerate(cut):
        own = {part: size for part, size in sizes.items() if part in held}
        for parts in (held.replace("q", ""), "q" if "q" in held else ""):
            if parts:
                columns = part_rows(sizes, groups, (parts,))[parts]
                pieces.append(
                    _Piece(_span(columns), number, _span(part_rows(own, groups, (parts,))[parts]), parts == "q")
                )
    return pieces, [rows_of(source) for source in sources], [source.bias for source in sources]


def _span(rows: Tensor) -> Rows:
    """The rows as a slice, of which torch makes a view, where they lie together."""
    start, end = int(rows[0]), int(rows[-1]) + 1
    return slice(start, end) if end - start == len(rows) else rows


class _ReadLinear(torch.autograd.Function):
    """The products that are needed, forward and backward, each once."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, place: Place, pieces: list[_Piece], *given: Tensor | None) -> Tensor:
        weights, biases = given[: len(given) // 2], given[len(given) // 2 :]
        ctx.save_for_backward(hidden, *weights)
        ctx.place, ctx.pieces, ctx.biased = place, pieces, [bias is not None for bias in biases]
        device = hidden.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        with torch.autocast(device, enabled=False):
            states = hidden.to(dtype)
            outputs = sum(len(weight) for weight in weights if weight is not None)
            whole = states.new_zeros(*hidden.shape[:-1], outputs)
            for piece in pieces:
                weight, bias = weights[piece.source], biases[piece.source]
                assert weight is not None
                own = None if bias is None else bias[piece.rows].to(dtype)
                if piece.read:
                    found = nn.functional.linear(pick(states, place), weight[piece.rows].to(dtype), own)
                    _write(whole, place, piece.columns, found)
                else:
                    whole[..., piece.columns] = nn.functional.linear(states, weight[piece.rows].to(dtype), own)
        return whole

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        hidden, *weights = ctx.saved_tensors
        dtype, place = gradient.dtype, ctx.place
        needs = ctx.needs_input_grad[3:]
        to_weights: list[Tensor | None] = [
            # a transposed weight (GPT-2's) gets a transposed gradient
            torch.empty_like(weight, memory_format=torch.preserve_format) if needed else None
            for weight, needed in zip(weights, needs[: len(weights)], strict=True)
        ]
        to_biases: list[Tensor | None] = [
            weight.new_empty(len(weight)) if needed else None
            for weight, needed in zip(weights, needs[len(weights) :], strict=True)
        ]
        states = hidden.to(dtype)
        to_hidden = torch.zeros_like(states) if ctx.needs_input_grad[0] else None
        for piece in ctx.pieces:
            own, given = (pick(gradient, place), pick(states, place)) if piece.read else (gradient, states)
            own = own[..., piece.columns].reshape(own.shape[0] * own.shape[1], -1)
            given = given.reshape(-1, given.shape[-1])
            if to_hidden is not None:
                back = (own @ weights[piece.source][piece.rows].to(dtype)).view(len(hidden), -1, hidden.shape[-1])
                if piece.read:
                    _add(to_hidden, place, back)
                else:
                    to_hidden += back
            weight, bias = to_weights[piece.source], to_biases[piece.source]
            if weight is not None:
                weight[piece.rows] = (own.t() @ given).to(weight.dtype)
            if bias is not None:
                bias[piece.rows] = own.sum(0).to(bias.dtype)
        return None if to_hidden is None else to_hidden.to(hidden.dtype), None, None, *to_weights, *to_biases


def _write(whole: Tensor, place: Place, columns: Rows, found: Tensor) -> None:
    if isinstance(place, int):
        whole[:, place, columns] = found[:, 0]
        return
    texts = torch.arange(len(whole), device=whole.device)
    rows = whole[texts, place]
    rows[:, columns] = found[:, 0]
    whole[texts, place] = rows


def _add(whole: Tensor, place: Place, back: Tensor) -> None:
    if isinstance(place, int):
        whole[:, place] += back[:, 0]
    else:
        whole[torch.arange(len(whole), device=whole.device), place] += back[:, 0]
