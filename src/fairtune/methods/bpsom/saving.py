"""A model with a BP-SOM head on disk, where plain transformers has no place for it: safetensors and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from transformers import AutoConfig, AutoModel

from fairtune import __version__
from fairtune.errors import ModelError
from fairtune.files import write_json
from fairtune.methods.bpsom.head import BPSOMHead
from fairtune.methods.bpsom.model import BPSOMForSequenceClassification, drop_pooler

CONFIG, WEIGHTS = "config.json", "model.safetensors"
KIND = "fairtune-bpsom"
"""No model type of transformers, whose own loading would else leave the head out without an error."""


def save(model: BPSOMForSequenceClassification, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    head, som, config = model.bpsom, model.bpsom.som, model.config
    grid = None if som is None else [som.grid.columns, som.grid.rows]
    map_settings = {} if som is None else {"topology": som.grid.topology, "update": som.mode}
    write_json(
        folder / CONFIG,
        {
            "model_type": KIND,
            "architectures": [type(model).__name__],
            "fairtune": __version__,
            "id2label": {str(number): label for number, label in config.id2label.items()},
            "label2id": config.label2id,
            "base_model_prefix": model.base_model_prefix,
            "pooling": model.pooling,
            "head": {
                "features": head.hidden.in_features, "classes": head.out.out_features, "hidden": head.units, "grid": grid,
                "alpha": head.alpha, "reliability": head.reliability, **map_settings,
            },
            "base": json.loads(config.to_json_string(use_diff=False)),
        },
    )  # fmt: skip
    save_model(model, str(folder / WEIGHTS))


def load(folder: Path) -> BPSOMForSequenceClassification:
    try:
        written = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}: its {CONFIG} cannot be read ({error}).") from None
    if written.get("model_type") != KIND:
        raise ModelError(
            f"{folder}: {CONFIG} is of a {written.get('model_type')}, not of a model with a BP-SOM head; load it with plain "
            "transformers."
        )
    try:
        model = _empty(written)
        load_model(model, str(folder / WEIGHTS))
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"{folder}: the model is damaged or of another version of the libraries: {reason}") from None
    return model.eval()


def _empty(written: dict[str, Any]) -> BPSOMForSequenceClassification:
    values = dict(written["base"])
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    with torch.random.fork_rng(devices=[]):
        base = AutoModel.from_config(config)
    drop_pooler(base)
    settings = dict(written["head"])
    head = BPSOMHead(settings.pop("features"), settings.pop("classes"), **settings)
    return BPSOMForSequenceClassification(base, head, config, written["base_model_prefix"], written["pooling"])
