"""Removing hidden units that hardly vary, so that training goes on as if they had always been their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.optim import Optimizer

from fairtune.core.errors import ModelError
from fairtune.methods.base import Moment
from fairtune.methods.bpsom.head import BPSOMHead

CUT = {"hidden.weight": 0, "hidden.bias": 0, "out.weight": 1}
"""What of a head has its units in a dimension, and in which."""


def units_to_keep(std: Tensor, threshold: float) -> Tensor:
    """Which units vary more than the threshold, [units]; if none does, the one that varies most."""
    keep = std > threshold
    if not bool(keep.any()):
        keep[std.argmax()] = True
    return keep


@torch.no_grad()
def prune(
    head: BPSOMHead,
    keep: Tensor,
    mean: Tensor,
    optimizer: Optimizer | None = None,
    copies: Sequence[Mapping[str, Tensor]] = (),
) -> None:
    """Remove units from a head; what they gave on the mean goes into the next layer's bias.

    The parameters stay the same objects and the optimizer's state follows them, so that it goes on with what is left.

    Args:
        keep: the units that stay, a mask.
        mean: each unit's mean activation over a labelling pass.
        copies: of the head's parameters by their names in it, such as averages; cut likewise, each by its own weights.
    """
    if keep.shape != (head.units,) or keep.dtype != torch.bool or not bool(keep.any()):
        raise ModelError(
            f"prune: keep must be a mask of the head's {head.units} units that leaves at least one of them"
        )
    kept = keep.nonzero().flatten()
    for tensors in (*copies, dict(head.named_parameters())):
        if "out.bias" in tensors:
            _give_to_bias(tensors["out.bias"], tensors.get("out.weight", head.out.weight), keep, mean)
        for name, dim in CUT.items():
            if name in tensors:
                _select(tensors[name], dim, kept, optimizer)
    head.hidden.out_features = head.out.in_features = len(kept)
    head.som.keep(kept)


def resize(head: BPSOMHead, units: int) -> None:
    """Make room for a state with another number of units; what the head knew is lost."""
    if units == head.units:
        return
    for parameter, shape in (
        (head.hidden.weight, (units, head.hidden.in_features)),
        (head.hidden.bias, (units,)),
        (head.out.weight, (head.out.out_features, units)),
    ):
        parameter.grad = None
        _put(parameter, parameter.data.new_zeros(shape))
    head.hidden.out_features = head.out.in_features = units
    head.som.resize(units)


def copies_of(head: BPSOMHead, moment: Moment) -> list[dict[str, Tensor]]:
    """What the states of methods hold of the head's parameters, such as averages, by their names in it."""
    names = {id(parameter): name for name, parameter in moment.model.named_parameters()}
    own = {name: names[id(parameter)] for name, parameter in head.named_parameters()}
    states = [method.state_dict().items() for method in moment.methods]
    return [{name: t for name, end in own.items() for key, t in state if key.endswith(end)} for state in states]


def _give_to_bias(bias: Tensor, weight: Tensor, keep: Tensor, mean: Tensor) -> None:
    """What the units that go gave on the mean."""
    gone = weight[:, ~keep.to(weight.device)].double() @ mean[~keep].to(weight.device).double()
    bias.copy_(bias.double() + gone)


def _select(parameter: Tensor, dim: int, kept: Tensor, optimizer: Optimizer | None) -> None:
    kept = kept.to(parameter.device)
    state = optimizer.state.get(parameter, {}) if optimizer is not None else {}
    for name, value in state.items():  # moments and momentum are of the parameter's shape, a step count is not
        if isinstance(value, Tensor) and value.shape == parameter.shape:
            state[name] = value.index_select(dim, kept)
    gradient, parameter.grad = parameter.grad, None
    _put(parameter, parameter.data.index_select(dim, kept))
    if gradient is not None:
        parameter.grad = gradient.index_select(dim, kept)


def _put(parameter: Tensor, values: Tensor) -> None:
    """Give a parameter data of another shape.

    A graph that is still alive holds a node that expects gradients of the old shape, and autograd would use it again for the
    next graph; it makes a new one when the type of number changes, so that is changed and changed back.
    """
    parameter.data = values.to(torch.float64 if values.dtype != torch.float64 else torch.float32)
    parameter.data = values
