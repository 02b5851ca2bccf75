"""What memory a run will need at most, from the sizes of its model and its batches; nothing is loaded for it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtune.core.errors import FairtuneError
from fairtune.execution.job import Job
from fairtune.models.folder_safety import CONFIG, read_settings, weight_files
from fairtune.models.presets import preset_config
from fairtune.settings.learners import is_simple
from fairtune.settings.sections import Train

LIBRARIES = 600 << 20
"""Bytes that a worker has to itself besides what it trains: 260 to 320 million with torch and transformers, and as much again for
what a step throws away."""
COPIES = 4
"""Of each weight: itself, its gradient, and AdamW's two averages."""
KEPT_OF_WIDTH, KEPT_OF_SCORES = 17, 3
"""Numbers that a layer keeps of each token for the backward pass: so many times the width, and so many of each attention score."""
KEPT_OF_LOGITS = 3
FLOAT = 4
SIZES = {
    "width": ("hidden_size", "n_embd", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "vocabulary": ("vocab_size",),
    "context": ("max_position_embeddings", "n_positions"),
}
"""What architectures call their sizes."""


def estimate_memory(job: Job) -> int:
    """Bytes of a run's worker on a CPU, every batch being as long as it may be; libraries alone where the model is not known."""
    try:
        source = job.spec.model.fetched()
        config = preset_config(source.preset) if source.preset else read_settings(source.name, source.fetch() / CONFIG)
        sizes = _sizes(config, source.vocabulary)
        weights = _weights(source.fetch()) if source.preset is None else _weights_of(sizes)
    except (
        FairtuneError,
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
    ):  # the worker says what is wrong with it
        return LIBRARIES
    if is_simple({"learner": (job.plan["settings"].get("learner") or {}).get("name")}):
        return LIBRARIES + FLOAT * weights  # of its encoder, which is only read
    train = Train.model_validate(job.plan["settings"]["train"])
    classifies = job.plan["settings"]["task"].get("kind") is None
    texts = train.batch_size * (2 if "pairs" in (job.plan["settings"].get("learner") or {}) else 1)
    return LIBRARIES + FLOAT * (COPIES * weights + _kept(sizes, texts, train.longest, classifies))


def _kept(sizes: Mapping[str, int], batch: int, length: int, classifies: bool) -> int:
    """Numbers that the forward pass of a batch keeps for its backward pass."""
    a_token = KEPT_OF_WIDTH * sizes["width"] + KEPT_OF_SCORES * sizes["heads"] * length
    logits = 0 if classifies else KEPT_OF_LOGITS * sizes["vocabulary"]
    return batch * length * (sizes["layers"] * a_token + logits)


def _sizes(config: Mapping[str, Any], vocabulary: int | None) -> dict[str, int]:
    found = {
        size: next((config[n] for n in names if isinstance(config.get(n), int)), 0) for size, names in SIZES.items()
    }
    return {**found, "vocabulary": vocabulary or found["vocabulary"]}


def _weights_of(sizes: Mapping[str, int]) -> int:
    """Weights of a preset, near enough: a layer's are twelve squares of its width."""
    layers = 12 * sizes["layers"] * sizes["width"] ** 2
    return layers + (sizes["vocabulary"] + sizes["context"]) * sizes["width"]


def _weights(folder: Path) -> int:
    """Numbers in a checkpoint's safetensors files, as their headers say."""
    total = 0
    for file in weight_files(folder):
        with file.open("rb") as handle:
            size = int.from_bytes(handle.read(8), "little")
            header = json.loads(handle.read(min(size, file.stat().st_size)))
        total += sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
    return total
