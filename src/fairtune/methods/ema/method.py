"""Averaged weights in a run: updated after each step, in place while the model is evaluated and its best weights are saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor, nn

from fairtune.methods.base import Method, Moment, ParamGroup
from fairtune.methods.ema.average import EMA
from fairtune.methods.ema.config import EMAConfig


class AveragedWeights(Method):
    config: EMAConfig

    def __init__(self, config: EMAConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self._average: EMA | None = None

    def param_groups(self, groups: Sequence[ParamGroup], model: nn.Module) -> Sequence[ParamGroup]:
        """Now all methods have prepared the model; a run that is taken up again has its averages already."""
        if self._average is None and not self.config.idle:
            self._average = EMA(model, self.config.decay)
        return groups

    def after_step(self, moment: Moment) -> None:
        skipped = getattr(moment.optimizer, "step_was_skipped", False)  # by accelerate, when fp16 overflows
        if self._average is not None and not skipped:
            self._average.update()

    def copies(self) -> dict[str, Tensor]:
        return {} if self._average is None else self._average.averages

    def evaluating(self, model: nn.Module) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext() if self._average is None else self._average.averaged()

    def state_dict(self) -> dict[str, Any]:
        return {} if self._average is None else self._average.state_dict()

    def load_state_dict(self, state: Mapping[str, Any], model: nn.Module) -> None:
        if self.config.idle:
            return
        if self._average is None:
            self._average = EMA(model, self.config.decay)
        self._average.load_state_dict(state)
