"""Token embeddings whose gradient is made in the memory of the last one.

A batch touches a few hundred rows of a table of tens of thousands, but torch makes a new gradient of zeros for all of it in every
step, and reads all of it again for the norm. Here the memory is kept from step to step: the touched rows are cleared after it, and
the norm is that of the touched rows. Whoever else writes into the gradient (a penalty on all weights, a second backward pass) is
noticed by its version, and then nothing is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

LARGE = 1 << 20
"""Elements of a table from which on it is worth it."""
ROWS = "_touched_rows"
"""Attribute of a table's parameter with its `TouchedRows`."""


@dataclass
class TouchedRows:
    """What is known of a table's gradient.

    Args:
        rows: which are not 0; None if there is no gradient yet.
        storage: the gradient's memory, held so that no other tensor can be found in its place.
        version: how often it had been written to.
        spare: memory that is all 0, for the next one.
        wary: somebody may write to the gradient unseen (`p.grad.data.add_`), so that other rows are looked at, too.
    """

    rows: Tensor | None = None
    storage: Any = None
    version: int = 0
    spare: Tensor | None = None
    wary: bool = False


class FastEmbedding(nn.Embedding):
    """`nn.Embedding` on a CPU, with the memory of its gradient kept."""

    def forward(self, input: Tensor) -> Tensor:
        wanted = torch.is_grad_enabled() and self.weight.requires_grad and self.weight.device.type == "cpu"
        if not wanted or torch.compiler.is_compiling() or not hasattr(self.weight, ROWS):
            return super().forward(input)
        found: Tensor = _Lookup.apply(self.weight, input, self.padding_idx)  # type: ignore[no-untyped-call]
        return found


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, tokens: Tensor, padding: int | None) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.weight, ctx.padding = weight, padding
        return nn.functional.embedding(tokens, weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (tokens,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants the gradient's own gradient, as a penalty on it does
            padding = -1 if ctx.padding is None else ctx.padding
            rows = len(ctx.weight)
            return torch.ops.aten.embedding_dense_backward(gradient, tokens, rows, padding, False), None, None
        known: TouchedRows = getattr(ctx.weight, ROWS)
        whole, known.spare = known.spare, None  # what is still held would be copied
        if whole is None:
            whole = torch.zeros_like(ctx.weight)
        rows = tokens.flatten()
        whole.index_add_(0, rows, gradient.reshape(-1, gradient.shape[-1]).to(whole.dtype))
        if ctx.padding is not None:
            whole[ctx.padding] = 0
        known.rows, known.storage, known.version = rows, whole.untyped_storage(), whole._version
        return whole, None, None


def use_fast_embedding(model: nn.Module, wary: bool = False) -> None:
    """Let the large tables of a model that nothing else uses keep their gradient's memory; all else stays as it is.

    Args:
        wary: somebody may write to gradients in ways that torch does not count.
    """
    owners: dict[int, int] = {}
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            owners[id(parameter)] = owners.get(id(parameter), 0) + 1
    for module in model.modules():
        if (
            type(module) is not nn.Embedding
            or module.sparse
            or module.scale_grad_by_freq
            or module.max_norm is not None
        ):
            continue
        if module.weight.numel() >= LARGE and module.weight.requires_grad and owners[id(module.weight)] == 1:
            module.__class__ = FastEmbedding
            setattr(module.weight, ROWS, TouchedRows(wary=wary))


def nonzero_gradients(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """The gradients, of tables only the rows that are not 0."""
    found = []
    for parameter in parameters:
        if parameter.grad is not None:
            rows = _touched(parameter)
            found.append(parameter.grad if rows is None else parameter.grad[torch.unique(rows)])
    return found


def keep_gradient_memory(parameters: Iterable[nn.Parameter]) -> None:
    """Clear the gradients of tables and keep their memory; called after a step, before gradients are let go."""
    for parameter in parameters:
        rows, gradient = _touched(parameter), parameter.grad
        if rows is not None and gradient is not None and sys.getrefcount(gradient) <= _own_references():
            known: TouchedRows = getattr(parameter, ROWS)
            gradient[rows] = 0
            known.spare, parameter.grad, known.rows, known.storage = gradient, None, None, None


def _touched(parameter: nn.Parameter) -> Tensor | None:
    """The rows of a table's gradient that are not 0, where nobody else wrote into it."""
    known, gradient = getattr(parameter, ROWS, None), parameter.grad
    if known is None or gradient is None or known.rows is None:
        return None
    held = known.storage is not None and gradient.untyped_storage().data_ptr() == known.storage.data_ptr()
    same = held and gradient._version == known.version
    if same and known.wary:
        same = int(torch.count_nonzero(gradient)) == int(torch.count_nonzero(gradient[torch.unique(known.rows)]))
    return known.rows if same else None


@cache
def _own_references() -> int:
    """References to a gradient that nobody else holds; versions of torch differ in how many they keep themselves."""
    parameter = nn.Parameter(torch.zeros(1))
    parameter.sum().backward()  # type: ignore[no-untyped-call]
    gradient = parameter.grad
    return sys.getrefcount(gradient)
