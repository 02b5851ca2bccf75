"""Layer-wise rates in a run: the optimizer's groups, and a record of the rates."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from fairtune.methods.base import Method, Moment, ParamGroup
from fairtune.methods.layerwise_lr.config import LayerwiseLRConfig
from fairtune.methods.layerwise_lr.rates import Place, find_places, rows_of, with_rates


class LayerwiseLR(Method):
    config: LayerwiseLRConfig

    def __init__(self, config: LayerwiseLRConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self._places: list[Place] = []
        self._lr = 0.0

    def param_groups(self, groups: Sequence[ParamGroup], model: nn.Module) -> Sequence[ParamGroup]:
        if self.config.idle and self.config.groups is None:
            return groups
        self._places, self._lr = find_places(model, self.config), float(groups[0]["lr"])
        return groups if self.config.idle else with_rates(groups, self._places)

    def after_step(self, moment: Moment) -> None:
        if moment.step != 1 or self.config.idle:
            return
        rows = rows_of(self._places, self._lr)
        arrays = {
            "lr": torch.tensor([row.lr for row in rows], dtype=torch.float64),
            "parameters": torch.tensor([row.parameters for row in rows]),
        }
        moment.record("layerwise_lr", arrays, places=[row.place for row in rows], rates=[row.lr for row in rows])
