"""The memory that a run needs. On a GPU torch says what it allocated; elsewhere it is counted, part by part.

The size of a process would show what it did before: a worker that lives for a whole study keeps the pages of its largest run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from fairtune.training.loop import TrainingRun

ALLOCATED = "the most that torch allocated on the GPU"
COUNTED = (
    "counted: weights, gradients, optimizer state, what methods keep, and what the forward pass of the largest batch keeps for its "
    "backward pass; the process and its libraries are not in it"
)


def watch_memory(device: torch.device) -> None:
    """Begin to look for a run's peak."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def describe_memory(run: TrainingRun) -> dict[str, Any]:
    """The peak of a run that has trained, and what it is made of where it was counted."""
    if run.device.type == "cuda":
        return {"peak_bytes": torch.cuda.max_memory_allocated(run.device), "kind": ALLOCATED}
    parts = run.progress.memory
    return {"peak_bytes": sum(parts.values()), "kind": COUNTED, "parts": parts}


@contextmanager
def count_activations(run: TrainingRun, size: int) -> Iterator[None]:
    """Count what a forward pass keeps for the backward pass, if its batch is the largest so far; changes nothing of either.

    Args:
        size: of the batch, in tokens.
    """
    now = run.progress
    if run.device.type == "cuda" or size <= now.largest_batch:
        yield
        return
    largest, now.largest_batch = now.largest_batch, size
    weights = {_place(tensor) for tensor in _tensors(run.model)}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        if _place(tensor) not in weights:
            kept[_place(tensor)] = tensor.untyped_storage().nbytes()
        return tensor.detach()  # the tensor itself would hold the graph that holds it

    try:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            yield
    except BaseException:  # a pass that is not gone through to its end has not been counted
        now.largest_batch = largest
        raise
    now.memory["activations"] = max(now.memory.get("activations", 0), sum(kept.values()))


def count_states(run: TrainingRun) -> None:
    """Count all that a run holds besides activations; called after a step, when the optimizer's state is there.

    The largest of each part counts, since pruning makes a model smaller; a run that goes on from a checkpoint knows what it had.
    """
    if run.device.type == "cuda":
        return
    now = run.progress
    parts = {
        "weights": sum({_place(t): t.untyped_storage().nbytes() for t in _tensors(run.model)}.values()),
        "gradients": sum(p.nbytes for p in run.model.parameters() if p.requires_grad),
        "optimizer": sum(_bytes(state) for state in run.optimizer.state.values()),
        "methods": sum(_bytes(method.state_dict()) for method in run.methods),
    }
    for name, size in parts.items():
        now.memory[name] = max(now.memory.get(name, 0), size)


def _tensors(model: nn.Module) -> Iterator[Tensor]:
    return chain(model.parameters(), model.buffers())


def _bytes(state: Any) -> int:
    return sum(value.nbytes for value in state.values() if isinstance(value, Tensor))


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
