"""Weights, gradients and optimizer state divided among the processes of a run, for models that do not fit on one device.

By torch's `fully_shard`: each process holds its rows of every tensor; a layer's whole weights are there only while it computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from fairtune.methods.base import ParamGroup


def shard_model(model: nn.Module, device: torch.device, processes: int) -> None:
    """Divide a model, each layer by itself and then what is left; gradients become sums over all processes."""
    mesh = init_device_mesh(device.type, (processes,))
    layers = [layer for module in model.modules() if isinstance(module, nn.ModuleList) for layer in module]
    for layer in reversed(layers):  # inner lists before those that hold them
        if any(True for _ in layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)  # gloo has no other, and a mean would have to be undone


def named_groups(model: nn.Module, groups: Sequence[ParamGroup]) -> list[ParamGroup]:
    """An optimizer's groups with the names of parameters in their place, by which they are known once they are divided."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [{**group, "params": [names[id(parameter)] for parameter in group["params"]]} for group in groups]


def groups_of(model: nn.Module, named: Sequence[ParamGroup]) -> list[ParamGroup]:
    """The groups of a model's parameters from those of their names."""
    parameters = dict(model.named_parameters())
    return [{**group, "params": [parameters[name] for name in group["params"]]} for group in named]


def is_sharded(model: nn.Module) -> bool:
    return isinstance(model, FSDPModule)


def whole(value: Any) -> Any:
    """A tensor with all its rows; to be asked for in every process at once."""
    return value.full_tensor() if isinstance(value, DTensor) else value


def own_part(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def divided(value: Tensor, like: Tensor) -> Tensor:
    """This process's part of a whole tensor, if another of its shape is divided; else the tensor itself."""
    if not isinstance(like, DTensor) or isinstance(value, DTensor) or value.shape != like.shape:
        return value
    return distribute_tensor(value.to(like.device), like.device_mesh, like.placements)


@torch.no_grad()
def load_whole(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give a divided model whole weights."""
    own = model.state_dict()
    assert own.keys() == weights.keys(), "the weights are of this model"
    for name, tensor in own.items():
        cast(Tensor, tensor).copy_(divided(weights[name], tensor))
