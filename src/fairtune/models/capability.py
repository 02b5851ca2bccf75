"""Whether a checkpoint's architecture can do what a study asks: tried before run 1, on a small model of the same config."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from fairtune.core.cache import cached_json, key_of
from fairtune.core.errors import ModelError
from fairtune.models.sources import ModelSource

VERSION = 1
VOCABULARY = 64
Capability = Literal["language_model", "causal", "bidirectional"]


def require_capable(source: ModelSource, use: Capability) -> None:
    """Refuse a checkpoint that cannot be trained for this use, whatever its weights are.

    An architecture that cannot be made small is not judged here; a run will show.
    """
    folder = source.fetch()
    config = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    key = key_of([VERSION, version("transformers"), source.name, config, use])
    problem = cached_json("suited", key, lambda: _problem(source, folder, use))
    if problem is not None:
        raise ModelError(problem)


def _problem(source: ModelSource, folder: Path, use: Capability) -> str | None:
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    from fairtune.models.causal_classifier import classify_at_last_token
    from fairtune.models.loader import require_causal
    from fairtune.models.transformers_files import Unloadable, draw_network, read_config

    model_class: Any = AutoModelForCausalLM if use == "language_model" else AutoModelForSequenceClassification
    try:
        config = read_config(folder)
        config.num_hidden_layers, config.vocab_size = 1, VOCABULARY
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[:1]
        config.bos_token_id = config.eos_token_id = config.pad_token_id = None
        with torch.random.fork_rng(devices=[]):
            network = draw_network(model_class, config, source.name).eval()
        if use == "language_model":
            require_causal(source, network)
        else:
            classify_at_last_token(network, use)
    except Unloadable:
        return None
    except ModelError as error:
        return str(error)
    except Exception:  # it cannot be made small
        return None
    return None
