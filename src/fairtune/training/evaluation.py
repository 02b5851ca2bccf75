"""Scoring a split: every example once, in eval mode, scores back in the order of the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from fairtune.methods.base import Batch, Method
from fairtune.tasks.batches import Indices, collate, evaluation_batches
from fairtune.tasks.encoding import Encoded
from fairtune.tasks.metrics import classification_metrics

TOKENS_PER_BATCH = {"cpu": 1024}
"""Padded tokens in a batch: what fits a CPU's caches, or what fills a GPU."""
MANY_TOKENS = 16384


@dataclass(frozen=True)
class Evaluation:
    """Scores of a split, and the figures they make."""

    scores: npt.NDArray[np.float32]
    metrics: dict[str, float]


def to_device(data: Encoded, rows: Indices, device: torch.device) -> Batch:
    """The rows as a padded batch on the device."""
    batch = {name: torch.from_numpy(array) for name, array in collate(data, rows).items()}
    return batch if device.type == "cpu" else {k: v.to(device, non_blocking=True) for k, v in batch.items()}


def evaluate(
    model: nn.Module, data: Encoded, device: torch.device, methods: Sequence[Method], between: Callable[[], None]
) -> Evaluation:
    """Score a split.

    Args:
        between: called before each batch, so that a long evaluation can be stopped.
    """
    scores: npt.NDArray[np.float32] | None = None
    training = model.training
    with ExitStack() as stack:
        for method in methods:
            stack.enter_context(method.evaluating(model))
        stack.callback(model.train, training)
        model.eval()
        with torch.inference_mode():
            for rows in evaluation_batches(data.lengths, TOKENS_PER_BATCH.get(device.type, MANY_TOKENS)):
                between()
                batch = {k: v for k, v in to_device(data, rows, device).items() if k != "labels"}
                logits = model(**batch).logits.float().cpu().numpy()
                if scores is None:
                    scores = np.empty((len(data), logits.shape[1]), dtype=np.float32)
                scores[rows] = logits
    assert scores is not None, "a split is never empty"
    loss = torch.nn.functional.cross_entropy(torch.from_numpy(scores).double(), torch.from_numpy(data.labels))
    return Evaluation(scores, {"loss": float(loss), **classification_metrics(data.labels, scores)})
