"""R-Drop: what two dropout masks make of an example is pulled together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from fairtune.core.errors import RunFailure
from fairtune.methods.base import Batch, Method, Moment
from fairtune.methods.config import MethodConfig
from fairtune.methods.losses import in_single
from fairtune.methods.registry import register
from fairtune.settings.values import Number

if TYPE_CHECKING:
    from torch import Tensor

LOOKS = 10
"""Steps in which the two passes must have differed once. A head that starts at zero hides dropout in the first."""
NOISE = 1e-4
"""Where the same row stands in a batch can change its last bits; dropout changes far more."""


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
        return self.alpha == 0

    @property
    def step_factor(self) -> float:
        return 1.0 if self.idle else 2.0


def twice(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A batch with all its examples once more behind them: every tensor that has as many rows as `labels`."""
    import torch

    rows = len(batch["labels"])
    return {name: torch.cat([t, t]) if t.ndim and len(t) == rows else t for name, t in batch.items()}


def divergence(logits: Tensor) -> Tensor:
    """Mean over examples of (KL(p || q) + KL(q || p)) / 2, p and q from the halves of a doubled batch's logits.

    Gradients go into both halves, as published.
    """
    log_p, log_q = _halves(logits).log_softmax(-1).unbind()
    each = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)
    return each.mean() / 2


def rdrop_loss(
    logits: Tensor,
    labels: Tensor,
    alpha: float = 1.0,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    """The mean loss over both passes, and alpha times their divergence.

    Args:
        logits: of a batch that `twice` doubled, [2 x batch, classes].
        labels: of the doubled batch.
        loss: mean of a batch's logits and labels; cross entropy if absent.
    """
    from torch.nn.functional import cross_entropy

    logits = in_single(logits)  # once, so that both gradients are added in single precision
    return (loss or cross_entropy)(logits, labels) + alpha * divergence(logits)


def _halves(logits: Tensor) -> Tensor:
    """The first and the second pass, [2, batch, classes], in single precision at least."""
    return in_single(logits).reshape(2, len(logits) // 2, -1)


@register
class RDrop(Method):
    """Refuses a model without dropout, to which it could do nothing."""

    name, config_class = "rdrop", RDropConfig
    excludes = frozenset({"copies of an example in a batch"})
    kinds = ("classify",)
    config: RDropConfig

    def __init__(self, config: RDropConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self._differed = False
        self._steps = 0

    def inputs(self, batch: Batch) -> Batch:
        return batch if self.config.idle else twice(batch)

    def penalty(self, outputs: Any, batch: Batch) -> Tensor | None:  # noqa: ARG002
        if self.config.idle:
            return None
        if not self._differed and self._steps < LOOKS:
            first, second = _halves(outputs.logits.detach()).unbind()
            largest = max(float(first.abs().max()), float(second.abs().max()))
            self._differed = float((first - second).abs().max()) > NOISE * largest
        return self.config.alpha * divergence(outputs.logits)

    def after_step(self, moment: Moment) -> None:
        if self.config.idle or self._differed or self._steps >= LOOKS:
            return
        self._steps += 1
        if self._steps == min(LOOKS, moment.total_steps):
            raise RunFailure(
                f"rdrop: in {self._steps} steps the two passes of an example never differed, so the model has no dropout and the "
                "penalty is 0 at twice the cost; use a checkpoint whose config has dropout, or leave rdrop out"
            )
