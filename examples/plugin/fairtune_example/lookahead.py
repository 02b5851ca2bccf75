"""Lookahead (Zhang et al., 2019): every few steps, go back part of the way to where the weights were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from fairtune.methods.base import Method, Moment, ParamGroup
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register

if TYPE_CHECKING:  # a hook that needs torch imports it itself, so that `fairtune validate` does without it
    from torch import Tensor, nn


class LookaheadConfig(MethodConfig):
    """Every few steps, go back part of the way to where the weights were (Lookahead)."""

    every: int = Field(5, ge=1, le=1_000_000, description="Steps from one look back to the next.")
    keep: float = Field(0.5, gt=0, le=1, description="Share of the way that is kept; 1 goes back nowhere.")

    @property
    def idle(self) -> bool:
        """Nothing is taken back: an arm with this is a control for one in which it acts."""
        return self.keep == 1

    def control_for(self, acting: MethodConfig) -> bool:
        return self.idle and isinstance(acting, LookaheadConfig) and not acting.idle


@register
class Lookahead(Method):
    name, config_class = "lookahead", LookaheadConfig
    excludes = frozenset({"weights after some steps"})
    config: LookaheadConfig

    def __init__(self, config: LookaheadConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self._slow: dict[str, Tensor] = {}
        self._fast: dict[str, nn.Parameter] = {}

    def param_groups(self, groups: Sequence[ParamGroup], model: nn.Module) -> Sequence[ParamGroup]:
        """All methods have prepared the model by now; a run that is taken up again has its slow weights already."""
        if not self.config.idle:
            self._fast = {name: p for name, p in model.named_parameters() if p.requires_grad}
            self._slow = self._slow or {name: p.detach().clone() for name, p in self._fast.items()}
        return groups

    def after_step(self, moment: Moment) -> None:
        if moment.step % self.config.every:
            return
        for name, fast in self._fast.items():
            slow = self._slow[name].to(fast.device)
            self._slow[name] = slow.lerp_(fast.detach(), self.config.keep)
            fast.data.copy_(slow)

    def state_dict(self) -> dict[str, Any]:
        """The slow weights by the parameters' names, so that a method that prunes the model prunes these too."""
        return dict(self._slow)

    def load_state_dict(self, state: Mapping[str, Any], model: nn.Module) -> None:  # noqa: ARG002
        self._slow = {name: value.clone() for name, value in state.items()}
