"""Averaged weights: evaluated and kept in place of the raw ones."""

from __future__ import annotations

from pydantic import Field

from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register
from fairtune.settings.values import Number


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
        """The average is the raw weights."""
        return self.decay == 0

    @property
    def whole_weights(self) -> str | None:
        return None if self.idle else "it keeps an average of every weight, and puts it in the weight's place"

    def control_for(self, acting: MethodConfig) -> bool:
        """Raw weights are the control of averaged ones."""
        return self.idle and isinstance(acting, EMAConfig) and not acting.idle


register(
    "ema",
    EMAConfig,
    "fairtune.methods.ema.method:AveragedWeights",
    claims=["weights that are evaluated"],
    toy={"decay": 0.9},
)
