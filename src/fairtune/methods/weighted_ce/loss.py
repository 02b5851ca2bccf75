"""`weighted_cross_entropy`: a mean in which an example counts by the weight of its class."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor
from torch.nn.functional import cross_entropy

from fairtune.core.errors import ModelError
from fairtune.methods.logits import of_batch, weights_of


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Sequence[float]) -> Tensor:
    """sum(w l) / sum(w) over a batch, as `torch.nn.CrossEntropyLoss(weight)` has it, in single precision.

    Args:
        logits: [batch, classes].
        labels: classes from 0, [batch].
        weights: one for each class, above 0.
    """
    if not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise ModelError(f"weights are {list(weights)}; allowed are numbers above 0")
    logits = of_batch(logits, labels)
    return cross_entropy(logits, labels, weight=weights_of(tuple(weights), logits))
