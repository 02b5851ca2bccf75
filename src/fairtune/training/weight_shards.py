"""Weights, gradients and optimizer state divided among the processes of a run, for models that do not fit on one device.

By torch's `fully_shard`: each process holds its rows of every tensor; a layer's whole weights are there only while it computes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from fairtune.methods.base import ParamGroup
from fairtune.training.ranks import Ranks

DIVIDED = "its weights are divided, so that all devices must go through the model equally often"
"""Why a batch is not cut in one process alone."""


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


class Division:
    """A model divided among the processes of a run, from the beginning of its training to the end.

    Args:
        model: whole, on the CPU; it is divided in place.
        groups: the optimizer's, of the whole model's parameters, which are no longer its own afterwards.
    """

    def __init__(self, model: nn.Module, groups: Sequence[ParamGroup], device: torch.device, ranks: Ranks) -> None:
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        self._named = [{**group, "params": [names[id(parameter)] for parameter in group["params"]]} for group in groups]
        self._whole = copy.deepcopy(model) if ranks.leads else None
        shard_model(model, device, ranks.size)

    def groups(self, model: nn.Module) -> list[ParamGroup]:
        """The optimizer's groups, of the divided model's parameters."""
        parameters = dict(model.named_parameters())
        return [{**group, "params": [parameters[name] for name in group["params"]]} for group in self._named]

    def undo(self, model: nn.Module, device: torch.device) -> nn.Module:
        """In the first process a whole model with these weights, on the device if it has room for them; in others the same."""
        weights = {name: whole(tensor) for name, tensor in model.state_dict().items()}
        if self._whole is None:
            return model
        self._whole.load_state_dict(weights)
        self._whole.train(model.training)
        try:
            return self._whole.to(device)
        except torch.OutOfMemoryError:
            return self._whole.cpu()


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
