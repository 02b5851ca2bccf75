"""The labels of a map's cells: a pass that counts which classes fall on which cell, and how the units vary meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fairtune.core.errors import DataError
from fairtune.som.distances import has_topographic_error, winners_of

if TYPE_CHECKING:
    from fairtune.som.som import SOM

BINS = 20
"""Bins of a unit's histogram over 0..1; what lies outside is counted in the first or the last."""


class Labelling:
    """Takes examples with their classes batch by batch; `finish` writes labels, reliabilities and counts into the map."""

    def __init__(self, som: SOM) -> None:
        self.som = som
        device = som.prototypes.device
        self._wide = torch.float32 if device.type == "mps" else torch.float64
        self.examples = 0
        self.counts = torch.zeros_like(som.counts)
        """How many examples of each class fell on each cell, [cells, classes]."""
        self.histogram = torch.zeros(som.features, BINS, dtype=torch.int64, device=device)
        self.mean = torch.zeros(som.features, dtype=self._wide, device=device)
        self._squares = torch.zeros_like(self.mean)
        self._distances = torch.zeros((), dtype=self._wide, device=device)
        self._topographic_errors = torch.zeros((), dtype=torch.int64, device=device)

    @torch.no_grad()
    def add(self, x: Tensor, classes: Tensor) -> None:
        """Counts these examples; the map does not change."""
        som = self.som
        rows = som.checked(x)
        classes = som.checked_classes(classes, len(rows))
        if not len(rows):
            return
        distances = som.distances_to_cells(rows)
        cells = distances.argmin(1)
        found = torch.bincount(cells * som.classes + classes, minlength=self.counts.numel())
        self.counts += found.view_as(self.counts)
        self._distances += winners_of(cells, rows, som.prototypes).distances.sqrt().sum()
        self._topographic_errors += has_topographic_error(distances, som.steps).sum()
        self._watch(rows)

    def _watch(self, rows: Tensor) -> None:
        units = torch.arange(rows.shape[1], device=rows.device)
        bins = (rows * BINS).floor().clamp(0, BINS - 1).long()
        found = torch.bincount((units * BINS + bins).flatten(), minlength=self.histogram.numel())
        self.histogram += found.view_as(self.histogram)
        wide = rows.to(self._wide)
        mean = wide.mean(0)
        before, self.examples = self.examples, self.examples + len(rows)
        step = mean - self.mean
        self.mean += step * (len(rows) / self.examples)
        self._squares += (wide - mean).square().sum(0) + step.square() * (before * len(rows) / self.examples)

    @torch.no_grad()
    def finish(self) -> Labelling:
        """Each cell gets the class most of its examples have (the lowest on ties), and how many per cent have it, rounded down.

        A cell without examples gets no label (-1) and reliability 0.
        """
        self._seen()
        som = self.som
        total, majority = self.counts.sum(1), self.counts.amax(1)
        labels = (self.counts == majority[:, None]).int().argmax(1)  # the lowest of equals, on any device
        per_cent = 100 * majority // total.clamp(min=1)
        som.labels.copy_(labels.masked_fill(total == 0, -1))
        som.reliability.copy_(per_cent.to(som.reliability.dtype) / 100)
        som.counts.copy_(self.counts)
        return self

    @property
    def std(self) -> Tensor:
        """Standard deviation of each unit over the examples so far."""
        return (self._squares / self._seen()).sqrt()

    @property
    def quantisation_error(self) -> float:
        """Mean Euclidean distance of an example to its cell."""
        return float(self._distances) / self._seen()

    @property
    def topographic_error(self) -> float:
        """Share of the examples whose two nearest cells are not neighbours."""
        return float(self._topographic_errors) / self._seen()

    @property
    def mean_reliability(self) -> float:
        """Mean over the examples of the reliability of their cell, as the map has it now."""
        return float((self.counts.sum(1) * self.som.reliability.to(self._wide)).sum()) / self._seen()

    def _seen(self) -> int:
        if not self.examples:
            raise DataError("map: a labelling pass without examples says nothing; add some before it is finished")
        return self.examples
