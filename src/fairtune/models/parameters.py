"""The parameters of a model: how many train, and what the checkpoint calls them, also where the PEFT library wraps the model."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import asdict, dataclass

from torch import nn

PROMPTS, TUNER = "base_model.", "base_model.model."
"""What stands before every name of a model with prompts, and of one with adapters in it."""
TRAINED_COPY = ".modules_to_save.default."
UNUSED_COPY = ".original_module."


@dataclass(frozen=True)
class ParameterCount:
    """Numbers of elements; a tensor shared by several modules counts once."""

    trainable: int
    frozen: int
    buffers: int

    @property
    def total(self) -> int:
        return self.trainable + self.frozen

    @property
    def trainable_share(self) -> float:
        return self.trainable / self.total if self.total else 0.0

    def as_json(self) -> dict[str, float]:
        return {**asdict(self), "total": self.total, "trainable_share": self.trainable_share}


def count_parameters(model: nn.Module) -> ParameterCount:
    """Count what the model computes with; a copy that PEFT keeps and nothing uses is left out."""
    parameters = [p for name, p in model.named_parameters() if checkpoint_name(name) is not None]
    return ParameterCount(
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        frozen=sum(p.numel() for p in parameters if not p.requires_grad),
        buffers=sum(b.numel() for b in model.buffers()),
    )


def checkpoint_name(name: str, known: Container[str] = ()) -> str | None:
    """The checkpoint's name of a tensor; names of a plain model stay as they are, and an adapter's own is in no checkpoint.

    None means a copy that nothing uses: PEFT keeps the first state of a module that is trained as a whole. Names that the
    checkpoint is known to have settle the case of prompts before a base model called `model`.
    """
    if not name.startswith(PROMPTS):
        return name
    if UNUSED_COPY in name:
        return None
    inner = re.sub(r"\.base_layer(?=\.)", "", name.replace(TRAINED_COPY, "."))
    if inner.removeprefix(PROMPTS) in known:
        return inner.removeprefix(PROMPTS)
    return inner.removeprefix(TUNER).removeprefix(PROMPTS)
