"""A fused projection cut in two, so that a part of it can be frozen for good.

One tensor cannot be half frozen: autograd would compute the whole weight gradient, the optimizer would hold state for it and decay
it. Cut, the frozen part costs none of that. The state dict keeps the original layout, so the model saves and loads as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers.pytorch_utils import Conv1D

Part = TypeVar("Part")


def is_projection(module: object) -> bool:
    """Whether a module is a linear map whose weight can be read row by row."""
    return isinstance(module, nn.Linear | Conv1D)


def rows_of(module: nn.Module) -> Tensor:
    """The weight of a linear map with one row per output, whichever way the module stores it."""
    weight: Tensor = module.weight  # type: ignore[assignment]
    return weight.t() if isinstance(module, Conv1D) else weight


class SplitProjection(nn.Module):
    """A fused projection whose outputs come from two plain ones, named after the parts they hold (`qk` and `v`).

    Args:
        fused: the projection to cut; its weights are copied.
        sizes: rows of each part within a group, in their order (q, k, v).
        groups: how often that order repeats in the fused rows.
        frozen: the parts to freeze.
    """

    def __init__(self, fused: nn.Module, sizes: Mapping[str, int], groups: int, frozen: str) -> None:
        super().__init__()
        self.sizes, self.groups = dict(sizes), groups
        self.transposed = isinstance(fused, Conv1D)
        kept = "".join(part for part in sizes if part in frozen)
        self.names = kept, "".join(part for part in sizes if part not in frozen)
        weight, bias = rows_of(fused), fused.bias
        for name, rows in self.rows().items():
            part = nn.Linear(
                weight.shape[1], len(rows), bias=bias is not None, device=weight.device, dtype=weight.dtype
            )
            with torch.no_grad():
                part.weight.copy_(weight[rows.to(weight.device)])
                if isinstance(bias, Tensor):
                    part.bias.copy_(bias[rows.to(bias.device)])
            self.add_module(name, part.requires_grad_(name != kept))
        self._order = _pieces(self.sizes, self.names)
        self._register_state_dict_hook(_join)  # type: ignore[no-untyped-call]
        self.train(fused.training)

    def forward(self, hidden: Tensor) -> Tensor:
        kept, trained = (getattr(self, name) for name in self.names)
        if _is_plain(kept) and _is_plain(trained):
            whole: Tensor = _CutLinear.apply(  # type: ignore[no-untyped-call]
                hidden, kept.weight, kept.bias, trained.weight, trained.bias, self
            )
            return whole
        return self.join(kept(hidden), trained(hidden), dim=-1)  # an adapter wraps one of them

    def join(self, kept: Tensor, trained: Tensor, dim: int) -> Tensor:
        """Outputs, rows or biases of the two, put together as the fused projection has them."""
        parts = zip(self.names, (kept, trained), strict=True)
        by_name = {name: self._grouped(part, dim) for name, part in parts}
        at = dim + 1 if dim >= 0 else dim
        pieces = [by_name[name].narrow(at, start, end - start) for name, start, end in self._order]
        return torch.cat(pieces, dim=at).flatten(at - 1, at)

    @property
    def in_two(self) -> bool:
        """Whether the outputs are the one part's and then the other's."""
        return self.groups == 1 and len(self._order) == 2

    def ordered(self, kept: Part, trained: Part) -> tuple[Part, Part]:
        """What belongs to the two, in the order of the outputs."""
        return (kept, trained) if self._order[0][0] == self.names[0] else (trained, kept)

    def _grouped(self, whole: Tensor, dim: int) -> Tensor:
        """The first or the last dimension as [groups, rows of a group]."""
        shape = (self.groups, -1, *whole.shape[1:]) if dim == 0 else (*whole.shape[:-1], self.groups, -1)
        return whole.reshape(shape)

    def trained_outputs(self, whole: Tensor) -> Tensor:
        """The outputs that come from the part that trains; a view where they lie together."""
        groups, place, pieces = self._grouped(whole, -1), 0, []
        for name, start, end in self._order:
            if name == self.names[1]:
                pieces.append(groups.narrow(-1, place, end - start))
            place += end - start
        return (pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=-1)).flatten(-2)

    def rows(self) -> dict[str, Tensor]:
        """The rows of the fused weight that each of the two holds."""
        return part_rows(self.sizes, self.groups, self.names)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Cut a fused tensor of a state dict into the parts' own, before they look for theirs."""
        for parameter in ("weight", "bias"):
            fused = state_dict.pop(f"{prefix}{parameter}", None)
            if fused is not None:
                fused = fused.t() if self.transposed and parameter == "weight" else fused
                for name, rows in self.rows().items():
                    state_dict[f"{prefix}{name}.{parameter}"] = fused[rows.to(fused.device)]
        super()._load_from_state_dict(state_dict, prefix, *args)


class _CutLinear(torch.autograd.Function):
    """The fused product forward and to its input, and the weight gradient of the part that trains only.

    Two products side by side would have to copy their outputs together, which eats a fifth of what freezing saves. So each
    writes its own columns of one result where the columns lie together; else the rows are put together first.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        kept: Tensor,
        kept_bias: Tensor | None,
        trained: Tensor,
        trained_bias: Tensor | None,
        cut: SplitProjection,
    ) -> Tensor:
        ctx.save_for_backward(hidden, kept, trained)
        ctx.cut = cut
        if cut.in_two and not torch.compiler.is_compiling():
            return _side_by_side(hidden, cut.ordered(kept, trained), cut.ordered(kept_bias, trained_bias))
        bias = None if kept_bias is None or trained_bias is None else cut.join(kept_bias, trained_bias, dim=0)
        return torch.nn.functional.linear(hidden, cut.join(kept, trained, dim=0), bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        hidden, kept, trained = ctx.saved_tensors
        cut, dtype = ctx.cut, gradient.dtype
        gradient = gradient.reshape(-1, gradient.shape[-1])
        to_hidden = to_weight = to_bias = None
        if ctx.needs_input_grad[0]:
            if cut.in_two:
                first, second = cut.ordered(kept, trained)
                to_hidden = gradient[:, : len(first)] @ first.to(dtype)
                torch.addmm(to_hidden, gradient[:, len(first) :], second.to(dtype), out=to_hidden)
            else:
                to_hidden = gradient @ cut.join(kept, trained, dim=0).to(dtype)
            to_hidden = to_hidden.reshape(hidden.shape).to(hidden.dtype)
        if ctx.needs_input_grad[3] or ctx.needs_input_grad[4]:
            own = cut.trained_outputs(gradient)
            if ctx.needs_input_grad[3]:
                to_weight = (own.t() @ hidden.reshape(-1, hidden.shape[-1]).to(dtype)).to(trained.dtype)
            if ctx.needs_input_grad[4]:
                to_bias = own.sum(0).to(trained.dtype)
        return to_hidden, None, None, to_weight, to_bias, None


def _side_by_side(
    hidden: Tensor, weights: tuple[Tensor, Tensor], biases: tuple[Tensor | None, Tensor | None]
) -> Tensor:
    """Two linear maps of one input, each written to its own columns; in autocast's precision where that is on."""
    device = hidden.device.type
    mixed = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device) if mixed else hidden.dtype
    rows = hidden.reshape(-1, hidden.shape[-1]).to(dtype)
    whole, place = rows.new_empty(len(rows), sum(map(len, weights))), 0
    for weight, bias in zip(weights, biases, strict=True):
        columns, turned = whole[:, place : place + len(weight)], weight.to(dtype).t()
        if bias is None:
            torch.mm(rows, turned, out=columns)
        else:
            torch.addmm(bias.to(dtype), rows, turned, out=columns)
        place += len(weight)
    return whole.reshape(*hidden.shape[:-1], -1)


def _is_plain(module: nn.Module) -> bool:
    """A linear map of torch's own, with nothing hooked to it."""
    return type(module) is nn.Linear and not module._forward_hooks and not module._forward_pre_hooks


def part_rows(sizes: Mapping[str, int], groups: int, names: tuple[str, ...]) -> dict[str, Tensor]:
    """Rows of a fused weight that hold the parts each name spells (`qk`: q and k), in the order of the fused weight."""
    every = torch.arange(groups * sum(sizes.values())).reshape(groups, -1)
    pieces = dict(zip(sizes, torch.split(every, list(sizes.values()), dim=1), strict=True))
    return {name: torch.cat([pieces[part] for part in sizes if part in name], dim=1).flatten() for name in names}


def _pieces(sizes: Mapping[str, int], names: tuple[str, ...]) -> list[tuple[str, int, int]]:
    """How a group's outputs are put together: (name, start, end) of each stretch of a part's own outputs."""
    done = dict.fromkeys(names, 0)
    order: list[tuple[str, int, int]] = []
    for part, size in sizes.items():
        name = next(name for name in names if part in name)
        start, end = done[name], done[name] + size
        if order and order[-1][0] == name:
            start = order.pop()[1]
        order.append((name, start, end))
        done[name] = end
    return order


def _join(module: nn.Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    """Put the parts' tensors together as the fused projection had them. Parts that an adapter wraps are left as they are."""
    assert isinstance(module, SplitProjection)
    for parameter in ("weight", "bias"):
        keys = [f"{prefix}{name}.{parameter}" for name in module.names]
        if all(key in state for key in keys):
            kept, trained = (state.pop(key).detach() for key in keys)
            joined = module.join(kept, trained, dim=0)
            turned = module.transposed and parameter == "weight"
            state[f"{prefix}{parameter}"] = joined.t().contiguous() if turned else joined
