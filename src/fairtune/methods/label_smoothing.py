"""Label smoothing: a little of every target goes to all classes alike, as torch defines it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from fairtune.methods.base import Batch, Method
from fairtune.methods.config import MethodConfig
from fairtune.methods.losses import in_single
from fairtune.methods.registry import register
from fairtune.settings.values import Number

if TYPE_CHECKING:
    from torch import Tensor


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
        return self.smoothing == 0


@register
class LabelSmoothing(Method):
    name, config_class = "label_smoothing", LabelSmoothingConfig
    excludes = frozenset({"loss"})
    kinds = ("classify",)
    config: LabelSmoothingConfig

    def loss(self, outputs: Any, batch: Batch) -> Tensor | None:
        from torch.nn.functional import cross_entropy

        if self.config.idle:
            return None
        return cross_entropy(in_single(outputs.logits), batch["labels"], label_smoothing=self.config.smoothing)
