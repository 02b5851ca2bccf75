"""Whether a checkpoint's architecture can do what a study asks: tried before run 1, on a small model of the same config."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from fairtune.errors import ModelError
from fairtune.files import write_json
from fairtune.models.sources import ModelSource
from fairtune.tasks.cache import cached, key_of

VERSION = 1
FACTS = "answer.json"
VOCABULARY = 64
Use = Literal["language_model", "causal", "bidirectional"]


def require_suited(source: ModelSource, use: Use) -> None:
    """Refuse a checkpoint that cannot be trained so, whatever its weights are.

    An architecture that cannot be made small is not judged here; a run of it tells.

    Args:
        use: a language model, or a classifier whose tokens see only earlier ones, or all.

    Raises:
        ModelError: it cannot.
    """
    folder = source.fetch()
    config = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()

    def build(entry: Path) -> None:
        write_json(entry / FACTS, {"problem": _problem(source, folder, use)})

    entry = cached("suited", key_of([VERSION, version("transformers"), source.name, config, use]), build)
    problem = json.loads((entry / FACTS).read_bytes())["problem"]
    if problem is not None:
        raise ModelError(problem)


def _problem(source: ModelSource, folder: Path, use: Use) -> str | None:
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    from fairtune.models.causal import classify_at_last_token
    from fairtune.models.loading import require_causal

    kind: Any = AutoModelForCausalLM if use == "language_model" else AutoModelForSequenceClassification
    try:
        with torch.random.fork_rng(devices=[]):
            network = kind.from_config(_small(folder)).eval()
        if use == "language_model":
            require_causal(source, network)
        else:
            classify_at_last_token(network, use)
    except ModelError as error:
        return str(error)
    except Exception:
        return None
    return None


def _small(folder: Path) -> Any:
    """The config of a model of one layer and few words."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder)
    config.num_hidden_layers, config.vocab_size = 1, VOCABULARY
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:1]
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        setattr(config, name, None)
    return config
