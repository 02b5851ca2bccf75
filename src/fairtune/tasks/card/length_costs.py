"""What a choice of `max_length` costs: tokens and matrix products of an epoch, padding included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.core.files import read_json
from fairtune.settings.sections import Train
from fairtune.tasks.tokens.counts import Counts, Numbers
from fairtune.tasks.tokens.encoded_splits import training_batches

BATCH_SIZE = int(Train().batch_size)
HIDDEN = ("hidden_size", "d_model", "dim", "n_embd")
"""What architectures call the width of their layers."""
INNER = ("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "hidden_dim", "n_inner")
"""Likewise of their feed-forward parts."""


@dataclass(frozen=True)
class Products:
    """Matrix products of one layer, forward; all layers and the backward pass multiply them by the same number."""

    hidden: int
    inner: int

    def flops(self, width: Numbers) -> Numbers:
        """Of a sequence of `width` tokens: four projections, two feed-forward products, and attention's two, which are
        quadratic in the width."""
        linear = 8 * self.hidden**2 + 4 * self.hidden * self.inner
        return width * linear + 4 * self.hidden * width**2


@dataclass(frozen=True)
class Cost:
    """An epoch at one `max_length`. Without the model's sizes, `flops` is None."""

    tokens: int
    flops: int | None

    def ratio(self, other: Cost) -> CostRatio:
        flops = None if self.flops is None or other.flops is None else self.flops / max(1, other.flops)
        return CostRatio(self.tokens / max(1, other.tokens), flops)


@dataclass(frozen=True)
class CostRatio:
    """Beside the cost of another choice."""

    tokens: float
    flops: float | None


def grouped_cost(counts: Counts, length: int, products: Products | None) -> Cost:
    """In batches of similar length, each padded to its own longest example: what fairtune trains with."""
    lengths = counts.truncated(length)
    batches = training_batches(lengths, BATCH_SIZE, seed=0, epoch=0)
    widths = np.repeat([lengths[batch].max() for batch in batches], [len(batch) for batch in batches])
    return _cost(widths, products)


def padded_cost(counts: Counts, length: int, products: Products | None) -> Cost:
    """With every example padded to the length: what many scripts do."""
    return _cost(np.full(counts.n, length, dtype=np.int64), products)


def _cost(widths: Numbers, products: Products | None) -> Cost:
    return Cost(int(widths.sum()), None if products is None else int(products.flops(widths).sum()))


def model_products(folder: Path) -> Products | None:
    """From a model's config; None where it does not name its sizes."""
    config = read_json(folder / "config.json") or {}
    hidden = _size(config, HIDDEN)
    return None if hidden is None else Products(hidden, _size(config, INNER) or 4 * hidden)


def _size(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((value for name in names if isinstance(value := config.get(name), int) and value > 0), None)
