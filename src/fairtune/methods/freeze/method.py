"""Parts of a model that do not train, found by depth and not by name."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from fairtune.core.errors import ModelError
from fairtune.methods.base import Method, Moment
from fairtune.methods.freeze import FreezeConfig
from fairtune.models.depth import find_depths


class Freeze(Method):
    config: FreezeConfig

    def prepare(self, model: nn.Module) -> nn.Module:
        depths = find_depths(model)
        frozen = [p for p in model.parameters() if depths.part(p) in self.config.parts]
        if not frozen:
            raise ModelError(
                f"freeze: the model has nothing in {' or '.join(self.config.parts)}, and {depths.layers} layers in all; name "
                "another part."
            )
        for parameter in frozen:
            parameter.requires_grad_(False)
        self._parameters = sum(p.numel() for p in frozen)
        head: Any = getattr(model, "get_output_embeddings", lambda: None)()
        self._tied = head is not None and any(head.weight is p for p in frozen)
        return model

    def after_step(self, moment: Moment) -> None:
        if moment.step != 1:
            return
        parameters = {"parameters": torch.tensor([self._parameters])}
        moment.record("freeze", parameters, parts=list(self.config.parts), tied_head=self._tied)
        if self._tied:
            moment.warn("freeze: the output head shares its weight with the embeddings, so it is frozen too")
