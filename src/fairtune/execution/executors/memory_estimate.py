"""About how much memory a run needs, from the size of its model and its batches; nothing is loaded for it."""

from __future__ import annotations

import json
import math
from pathlib import Path

from fairtune.core.errors import FairtuneError
from fairtune.models.folder_safety import CONFIG, read_settings, weight_files
from fairtune.models.presets import preset_config
from fairtune.study.run_spec import RunSpec

LIBRARIES = 600 << 20
"""Bytes of a worker besides what it trains."""
STATE_BYTES = 16
"""Of each weight: itself, its gradient and AdamW's two averages, as 32-bit numbers."""
KEPT_BYTES = 100
"""Of each token, per layer and unit of width: what the forward pass keeps for the backward pass."""
LOGIT_BYTES = 12
"""Of each token and entry of the vocabulary, of a language model."""
WIDTHS = ("hidden_size", "n_embd", "d_model", "dim")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
"""What architectures call their sizes."""


def estimate_memory(job: RunSpec) -> int:
    """Bytes of a run's worker, every batch being as long as it may be; libraries alone where the model is not known."""
    try:
        source = job.model.fetched()
        config = preset_config(source.preset) if source.preset else read_settings(source.name, source.fetch() / CONFIG)
        width, layers = (next((config[name] for name in names if name in config), 0) for names in (WIDTHS, LAYERS))
        vocabulary = source.vocabulary or config.get("vocab_size", 0)
        if source.preset:  # a layer's weights are twelve squares of its width
            weights = 12 * layers * width**2 + vocabulary * width
        else:
            weights = sum(map(_numbers, weight_files(source.fetch())))
    except (FairtuneError, OSError, ValueError, TypeError, KeyError, AttributeError):
        return LIBRARIES  # the worker says what is wrong with it
    train, classifies = job.settings.train, job.settings.task.kind is None
    texts = train.batch_size * (2 if "pairs" in (job.settings.learner or {}) else 1)
    kept = KEPT_BYTES * layers * width + (0 if classifies else LOGIT_BYTES * vocabulary)
    return int(LIBRARIES + STATE_BYTES * weights + texts * train.longest * kept)


def _numbers(file: Path) -> int:
    """How many numbers a safetensors file holds, by its header."""
    with file.open("rb") as handle:
        size = int.from_bytes(handle.read(8), "little")
        header = json.loads(handle.read(min(size, file.stat().st_size)))
    return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
