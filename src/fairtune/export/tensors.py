"""Tensors compared by their bits: those of a model, and those of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn

from fairtune.core.errors import LedgerError
from fairtune.models.folder_safety import weight_files


def named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter and persistent buffer, by the names of the model's own modules; a shared one once."""
    found: dict[str, Tensor] = dict(model.named_parameters())
    for place, module in model.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            if name not in module._non_persistent_buffers_set:
                found[f"{place}.{name}".lstrip(".")] = buffer
    return found


def copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as they are now, each with memory of its own."""
    return {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are equal to the last bit: nan equals nan, and 0 is not -0."""
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(_bits(one), _bits(other))


def put(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors into a model, by the names that `named_tensors` gives.

    Raises:
        LedgerError: the model has no such tensor.
    """
    own = named_tensors(model)
    for name, tensor in tensors.items():
        if name not in own or own[name].shape != tensor.shape or own[name].dtype != tensor.dtype:
            raise LedgerError(
                f"the delta has a tensor {name} ({_form(tensor)}), but the rebuilt model has "
                f"{f'one of {_form(own[name])}' if name in own else 'none'}; use the library versions that the recipe names."
            )
        own[name].detach().copy_(tensor)


def file_digests(folder: Path) -> dict[str, str]:
    """sha256 of the bytes of every tensor in a model folder's files."""
    digests = {}
    for file in weight_files(folder):
        with safe_open(str(file), framework="pt") as handle:
            for name in handle.keys():  # noqa: SIM118 - it is not a mapping
                digests[name] = hashlib.sha256(_bits(handle.get_tensor(name)).numpy().tobytes()).hexdigest()
    return dict(sorted(digests.items()))


def differing(found: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """Names whose digests differ, or that only one of the two has."""
    return [name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name)]


def _bits(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
