"""Averaged weights in transformers' `Trainer`."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from fairtune.methods.ema.method import EMA


class EMACallback(TrainerCallback):  # type: ignore[misc]
    """Updates the averages after each optimizer step; evaluate and save within `ema.averaged()`."""

    def __init__(self, ema: EMA) -> None:
        self.ema = ema

    def on_optimizer_step(self, *_: Any, optimizer: Any = None, **__: Any) -> None:
        if not getattr(optimizer, "step_was_skipped", False):
            self.ema.update()
