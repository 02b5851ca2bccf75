"""R-Drop: what two dropout masks make of an example is pulled together."""

from __future__ import annotations

from pydantic import Field

from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register
from fairtune.settings.values import Number


class RDropConfig(MethodConfig):
    """Put every example through the model twice and penalise what two dropout masks make different (R-Drop)."""

    alpha: Number = Field(
        1.0,
        ge=0,
        le=1e6,
        description="Weight of the divergence between the two predictions; 0 leaves the second pass out.",
    )

    @property
    def idle(self) -> bool:
        """Nothing is doubled and nothing is added."""
        return self.alpha == 0

    @property
    def step_factor(self) -> float:
        return 1.0 if self.idle else 2.0


register(
    "rdrop",
    RDropConfig,
    "fairtune.methods.rdrop.method:RDrop",
    claims=["copies of an example in a batch"],
    kinds=("classify",),
)
