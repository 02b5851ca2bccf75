"""A model with a BP-SOM head on disk, where plain transformers has no place for it: safetensors and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_model
from transformers import AutoModel

from fairtune.core.errors import ModelError
from fairtune.core.files import write_json
from fairtune.core.version import __version__
from fairtune.methods.bpsom.head import BPSOMHead
from fairtune.methods.bpsom.model import BPSOMForSequenceClassification, drop_pooler
from fairtune.models.folder_safety import CONFIG, check_folder, read_settings
from fairtune.models.transformers_files import (
    draw_empty,
    draw_network,
    explain_failure,
    make_config,
    require_plausible,
    tensor_shapes,
)

WEIGHTS = "model.safetensors"
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
    what = str(folder)
    check_folder(what, folder)
    written = read_settings(what, folder / CONFIG)
    if written.get("model_type") != KIND:
        raise ModelError(
            f"{folder}: {CONFIG} is of a {written.get('model_type')}, not of a model with a BP-SOM head; load it with plain "
            "transformers."
        )
    with explain_failure(f"{folder}: the model is damaged or of another version of the libraries"):
        model = _empty(written, folder / WEIGHTS, what)
        load_model(model, str(folder / WEIGHTS))
    return model.eval()


def _empty(written: dict[str, Any], weights: Path, what: str) -> BPSOMForSequenceClassification:
    values, settings = dict(written["base"]), dict(written["head"])
    config = make_config(values.pop("model_type"), values, what)
    require_plausible(draw_empty(AutoModel, config, f"{what}: nothing can be built by its {CONFIG}"), [weights], what)
    _require_own_head(settings, tensor_shapes([weights], what), what)
    with torch.random.fork_rng(devices=[]):
        base = draw_network(AutoModel, config, what)
    drop_pooler(base)
    head = BPSOMHead(settings.pop("features"), settings.pop("classes"), **settings)
    return BPSOMForSequenceClassification(base, head, config, written["base_model_prefix"], written["pooling"])


def _require_own_head(settings: dict[str, Any], shapes: dict[str, tuple[int, ...]], what: str) -> None:
    """Refuse a head of other sizes than the weights have, before there is memory taken for it."""
    hidden, features, classes, grid = (settings[name] for name in ("hidden", "features", "classes", "grid"))
    expected = {"bpsom.hidden.weight": (hidden, features), "bpsom.out.weight": (classes, hidden)}
    if grid is not None:
        columns, rows = grid
        expected["bpsom.som.prototypes"] = (columns * rows, hidden)
    for name, shape in expected.items():
        if shapes.get(name) != shape:
            raise ModelError(f"{what} is damaged: its {CONFIG} describes another head than {WEIGHTS} has ({name}).")
