"""Everything about a model, and what methods make of it, that can be known without training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fairtune.core.errors import DataError, ModelError, RunFailure
from fairtune.execution.start import build_start
from fairtune.methods.config import MethodUse
from fairtune.models.attention import attention_layers
from fairtune.models.model_parts import Batch
from fairtune.models.sources import ModelSource, with_vocabulary
from fairtune.models.tokenizers import load_tokenizer
from fairtune.settings.file_task import FileTask
from fairtune.settings.sections import Train
from fairtune.tasks import load_task
from fairtune.tasks.tokens.encoded_splits import encode
from fairtune.training.classification import PROBED, to_device

USUAL_TASK = "movie-reviews"
TWO_CLASSES = ("0", "1")
GPT2_VOCABULARY = 50257
"""Of a preset whose vocabulary is not given: that of the published models."""


@dataclass(frozen=True)
class Probe:
    """Real examples to measure a model on, or why there are none."""

    labels: tuple[str, ...]
    batch: Batch | None
    task: str | None = None
    problem: str | None = None

    def as_json(self) -> dict[str, Any]:
        size = None if self.batch is None else list(self.batch["input_ids"].shape)
        return {"task": self.task, "labels": list(self.labels), "batch": size, "problem": self.problem}


def inspect_model(
    source: ModelSource, methods: Sequence[MethodUse] = (), task: str | FileTask | None = None
) -> dict[str, Any]:
    """The card of a model with a fresh head, as the methods leave it.

    Args:
        task: whose examples attention logits and matrix products are measured on; None takes the usual one if it can be had.

    Raises:
        ModelError: the model cannot be used, or not with these methods.
    """
    if source.preset is not None and source.vocabulary is None:
        source = with_vocabulary(source, GPT2_VOCABULARY)
    probe = _probe(source, task)
    start = build_start(source, methods, 0, probe.labels, batch=probe.batch)
    try:
        card = start.describe()
    except RunFailure as failure:
        raise ModelError(f"model '{source.name}': {failure}") from None
    return {
        "model": source.as_json(),
        "architecture": type(start.loaded.network).__name__,
        "methods": [use.as_json() for use in methods],
        "measured_on": probe.as_json(),
        "queries_and_keys": _queries_and_keys(start.model, card["parameters"]["total"]),
        **card,
    }


def _probe(source: ModelSource, task: str | FileTask | None) -> Probe:
    if source.preset is not None:
        if task is not None:
            raise ModelError(
                f"model '{source.name}': a preset has no tokenizer, so it cannot read the task; leave --task out."
            )
        return Probe(
            (), None, problem="a preset has no tokenizer; it is shown as a language model that has read nothing"
        )
    if task is not None:
        return _examples(source, task)
    try:
        return _examples(source, USUAL_TASK)
    except (DataError, ModelError) as error:
        return Probe(TWO_CLASSES, None, problem=str(error))


def _examples(source: ModelSource, task: str | FileTask) -> Probe:
    loaded = load_task(task)
    split = loaded.splits["validation"]
    few = split.take(np.arange(min(PROBED, len(split))))
    length = min(Train().longest, source.positions or Train().longest)
    encoded = encode(few, load_tokenizer(source.fetch()), length)
    batch = to_device(encoded, np.arange(len(few)), torch.device("cpu"))
    return Probe(loaded.labels, batch, loaded.name)


def _queries_and_keys(model: torch.nn.Module, total: int) -> dict[str, Any] | None:
    """The size of the attention layers' queries and keys; None for an unknown architecture."""
    try:
        layers = attention_layers(model)
    except ModelError:
        return None
    projections = [projection for layer in layers for projection in layer.of("qk")]
    first, held = projections[0], sum(projection.parameters for projection in projections)
    return {
        "layers": len(layers),
        "heads": first.heads,
        "key_heads": layers[0].of("k")[0].heads,
        "head_dim": first.weight().shape[0] // first.heads,
        "parameters": held,
        "share": held / total,
    }
