"""Counting what is in a model: parameters that train, parameters that are frozen, buffers."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from torch import nn

from fairtune.models.naming import checkpoint_name


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
    """Counts what the model computes with; a copy that PEFT keeps and nothing uses is left out."""
    parameters = [p for name, p in model.named_parameters() if checkpoint_name(name) is not None]
    return ParameterCount(
        trainable=sum(p.numel() for p in parameters if p.requires_grad),
        frozen=sum(p.numel() for p in parameters if not p.requires_grad),
        buffers=sum(b.numel() for b in model.buffers()),
    )
