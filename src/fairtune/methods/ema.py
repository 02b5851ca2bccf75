"""Averaged weights: evaluated and kept in place of the raw ones. `EMA` by itself, and in a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from fairtune.core.errors import FairtuneError, ModelError
from fairtune.methods.base import Method, Moment, ParamGroup
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register
from fairtune.settings.values import Number

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import TrainerCallback

PREFIX = "average."
"""What stands before a parameter's name in a saved state."""


class EMAConfig(MethodConfig):
    """Evaluate and keep an exponential moving average of the trained weights; training itself never sees it."""

    decay: Number = Field(
        0.999,
        ge=0,
        lt=1,
        description="Share of the average that a step keeps; in step t no more than (1 + t) / (10 + t), so that the start is "
        "soon forgotten. 0 is the raw weights.",
    )

    @property
    def idle(self) -> bool:
        return self.decay == 0

    def control_for(self, acting: MethodConfig) -> bool:
        return self.idle and isinstance(acting, EMAConfig) and not acting.idle


class EMA:
    """An exponential moving average of the parameters that train.

    After step t each average is `d * average + (1 - d) * weight` with `d = min(decay, (1 + t) / (10 + t))`: without that
    warm-up, what a short fine-tuning ends with would be mostly what it began with. Weights of 16 bits are averaged in 32.

    Attributes:
        averages: by the parameters' names; changed in place.
        updates: how many steps they hold.
    """

    def __init__(self, model: nn.Module, decay: float = 0.999) -> None:
        import torch

        if not 0 <= decay < 1:
            raise FairtuneError(f"EMA: decay is {decay}; allowed is 0 (the raw weights) to below 1")
        self.decay, self.updates = decay, 0
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.averages = {
            name: p.detach().to(torch.promote_types(p.dtype, torch.float32), copy=True)
            for name, p in self._parameters.items()
        }
        self._raw: dict[str, Tensor] | None = None

    def update(self) -> None:
        """Take in the weights; to be called after each optimizer step."""
        import torch

        if self._raw is not None:
            raise FairtuneError("EMA: update() inside averaged(), where the model has the averages and not its weights")
        self.updates += 1
        kept = min(self.decay, (1 + self.updates) / (10 + self.updates))
        averages, weights = [], []
        for name, parameter in self._parameters.items():
            average = self.averages[name]
            if average.device != parameter.device:  # the model was moved since
                average.data = average.to(parameter.device)
            averages.append(average)
            weights.append(parameter.detach().to(average.dtype))
        torch._foreach_lerp_(averages, weights, 1 - kept)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The model has the averages; afterwards its own weights again, the very same bits, whatever happened."""
        if self._raw is not None:  # already so
            yield
            return
        self._raw = {name: parameter.data for name, parameter in self._parameters.items()}
        try:
            for name, parameter in self._parameters.items():
                parameter.data = self.averages[name].to(parameter)
            yield
        finally:
            raw, self._raw = self._raw, None
            for name, parameter in self._parameters.items():
                parameter.data = raw[name]

    def callback(self) -> TrainerCallback:
        """For transformers' `Trainer`: updates after each optimizer step; evaluate and save within `averaged()`."""
        from transformers import TrainerCallback

        average = self

        class Updating(TrainerCallback):  # type: ignore[misc]
            def on_optimizer_step(self, *_: Any, optimizer: Any = None, **__: Any) -> None:
                if not getattr(optimizer, "step_was_skipped", False):
                    average.update()

        return Updating()

    def state_dict(self) -> dict[str, Any]:
        """The averages as `average.<name>`, and `updates`."""
        return {"updates": self.updates, **{f"{PREFIX}{name}": average for name, average in self.averages.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state of the same parameters; their shapes may be others.

        Raises:
            ModelError: it is of other parameters.
        """
        saved = {name.removeprefix(PREFIX): value for name, value in state.items() if name.startswith(PREFIX)}
        if saved.keys() != self.averages.keys():
            other = sorted(saved.keys() ^ self.averages.keys())
            raise ModelError(f"EMA: the saved averages are not of this model's trainable parameters ({other[0]} ...)")
        for name, value in saved.items():
            average = self.averages[name]
            average.data = value.detach().to(average, copy=True)
        self.updates = int(state["updates"])


@register
class AveragedWeights(Method):
    name, config_class = "ema", EMAConfig
    excludes = frozenset({"weights that are evaluated"})
    toy: ClassVar = {"decay": 0.9}
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
