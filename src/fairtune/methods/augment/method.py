"""Augmentation in a run: the training texts of each epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from fairtune.methods.augment.augmenter import Augmenter
from fairtune.methods.augment.config import AugmentConfig
from fairtune.methods.base import Method, TrainingData
from fairtune.tasks.task import Texts


class Augment(Method):
    config: AugmentConfig

    def __init__(self, config: AugmentConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self._augmenter = Augmenter(config, seed)

    def begin(self, data: TrainingData) -> None:  # noqa: ARG002
        if not self.config.idle:
            self._augmenter.find()  # what is wrong with a function is told before the first step

    def texts(self, texts: Sequence[Texts], epoch: int) -> Sequence[Texts]:
        return self._augmenter.texts(texts, epoch)

    def state_dict(self) -> dict[str, Any]:
        """What the function answered: it may be slow, and need not answer the same again."""
        return {"answers": self._augmenter.answers} if self.config.function else {}

    def load_state_dict(self, state: Mapping[str, Any], model: nn.Module) -> None:  # noqa: ARG002
        self._augmenter.answers.update(state.get("answers", {}))
