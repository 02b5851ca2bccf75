"""Label smoothing: a little of every target goes to all classes alike."""

from __future__ import annotations

from pydantic import Field

from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register
from fairtune.settings.values import Number


class LabelSmoothingConfig(MethodConfig):
    """Take a share of each target from the right class and spread it over all classes alike (label smoothing)."""

    smoothing: Number = Field(
        0.1,
        ge=0,
        lt=1,
        description="The share: the right class keeps 1 - smoothing + smoothing / classes; 0 takes none.",
    )

    @property
    def idle(self) -> bool:
        """Nothing is taken."""
        return self.smoothing == 0


register(
    "label_smoothing",
    LabelSmoothingConfig,
    "fairtune.methods.label_smoothing.method:LabelSmoothing",
    claims=["loss"],
    kinds=("classify",),
)
