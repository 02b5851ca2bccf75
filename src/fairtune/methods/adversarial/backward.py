"""`adversarial_backward`: adversarial training in a loop of one's own, or in transformers' Trainer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from fairtune.core.errors import FairtuneError, nearest
from fairtune.methods.adversarial import (
    AdversarialConfig,
    FGMConfig,
    FreeLBConfig,
    PGDConfig,
)
from fairtune.methods.adversarial.method import Ascent, FreeLB
from fairtune.methods.base import Batch

METHODS: dict[str, tuple[type[AdversarialConfig], type[Ascent | FreeLB]]] = {
    "fgm": (FGMConfig, Ascent),
    "pgd": (PGDConfig, Ascent),
    "freelb": (FreeLBConfig, FreeLB),
}


@dataclass(frozen=True)
class _OwnPass:
    """A batch's way through the model as a user's loop has it."""

    model: nn.Module
    batch: Batch
    scale: float
    given_forward: Callable[[], Tensor] | None
    given_backward: Callable[[Tensor], object] | None

    def uniform(self, tokens: int, width: int) -> Tensor:
        return torch.rand(tokens, width, device=self.batch["input_ids"].device)

    def forward(self) -> Tensor:
        if self.given_forward is not None:
            return self.given_forward()
        loss: Tensor | None = self.model(**self.batch).loss
        if loss is None:
            raise FairtuneError(
                "adversarial_backward: the model gave no loss; put `labels` into the batch, or give `forward`."
            )
        return loss

    def backward(self, loss: Tensor) -> None:
        if self.given_backward is None:
            (loss * self.scale).backward()  # type: ignore[no-untyped-call]
        else:
            self.given_backward(loss)

    def whole(self) -> Tensor:
        loss = self.forward()
        self.backward(loss)
        return loss.detach()


def adversarial_backward(
    model: nn.Module,
    batch: Batch,
    method: Literal["fgm", "pgd", "freelb"] = "fgm",
    *,
    forward: Callable[[], Tensor] | None = None,
    backward: Callable[[Tensor], object] | None = None,
    scale: float = 1.0,
    **settings: Any,
) -> Tensor:
    """Forward and backward of one batch with adversarial training, in place of `loss.backward()`. Returns the loss, for the log.

    The gradients are added to those that the parameters have; no parameter changes, and no hook stays on the model.

    Args:
        batch: as the model takes it, with `input_ids`; where `attention_mask` is 0, nothing is perturbed.
        forward: gives the batch's loss; if absent `model(**batch).loss`.
        backward: takes a loss and adds its gradients, such as `accelerator.backward`; if absent `(scale * loss).backward()`.
        scale: what `backward` multiplies a loss by: one over the batches that are accumulated, a loss scaler's scale.
        settings: fields of the method; `fairtune methods fgm` explains them.

    Raises:
        FairtuneError: a setting or the method is not known, or not allowed.
        ModelError: the model has no token embeddings, or does not look them up.
    """
    if method not in METHODS:
        raise FairtuneError(
            f"adversarial_backward: unknown method {method!r}; allowed: {', '.join(METHODS)}.{nearest(method, METHODS)}"
        )
    config_class, implementation = METHODS[method]
    try:
        config = config_class.model_validate(settings)
    except ValidationError as error:
        reasons = "; ".join(f"{'.'.join(map(str, e['loc'][:1])) or 'settings'}: {e['msg']}" for e in error.errors())
        raise FairtuneError(
            f"adversarial_backward: {reasons}. Fields of {method}: {', '.join(config_class.model_fields)}."
        ) from None
    one = _OwnPass(model, batch, scale, forward, backward)
    return implementation(cast(Any, config)).around_backward(one, one.whole)
