"""AdaLoRA's rank allocation, which the library leaves to the training loop: called at every step, saved with the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

AVERAGES = ("exp_avg_ipt", "exp_avg_unc")
"""What the library's allocator keeps from step to step, by parameter."""


class RankAllocation:
    """Prunes ranks by their importance, as the library schedules it.

    Args:
        model: with AdaLoRA's adapters.
    """

    def __init__(self, model: nn.Module) -> None:
        self._tuner: Any = model.base_model
        self._gradients: list[tuple[nn.Parameter, Tensor]] = []

    def keep_gradients(self) -> None:
        """Remember the step's gradients: importance is made from them after the optimizer has dropped them."""
        self._gradients = [(p, p.grad) for p in self._tuner.parameters() if p.grad is not None]

    def allocate(self, step: int) -> None:
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        self._tuner.update_and_allocate(step)
        for parameter, _ in self._gradients:
            parameter.grad = None
        self._gradients = []

    def state_dict(self) -> dict[str, Any]:
        allocator = self._tuner.rankallocator
        averages = {f"{kind}.{name}": value for kind in AVERAGES for name, value in getattr(allocator, kind).items()}
        return {**averages, "rank_pattern": self._config.rank_pattern}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        allocator = self._tuner.rankallocator
        allocator.reset_ipt()
        for key, value in state.items():
            kind, _, name = key.partition(".")
            if kind in AVERAGES:
                getattr(allocator, kind)[name] = value
                allocator.ipt[name] = torch.zeros_like(value)
        self._config.rank_pattern = state["rank_pattern"]

    @property
    def _config(self) -> Any:
        return self._tuner.peft_config[self._tuner.trainable_adapter_name]
