"""Any transformers classifier with a `BPSOMHead` in place of its own head; on disk safetensors and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, cast

import torch
from safetensors.torch import load_model, save_model
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from fairtune.core import __version__
from fairtune.core.errors import ModelError
from fairtune.core.files import write_json
from fairtune.methods.bpsom.head import BPSOMHead
from fairtune.models.causal_classifier import LastTokenClassifier, sees_ahead
from fairtune.models.folder_safety import CONFIG, check_folder, read_settings
from fairtune.models.model_parts import base_model, evaluating
from fairtune.models.transformers_files import draw_network, explain_failure, make_config

Pooling = Literal["first", "last"]
WEIGHTS = "model.safetensors"
MODEL_TYPE = "fairtune-bpsom"
"""No model type of transformers, whose own loading would else leave the head out without an error."""


class BPSOMForSequenceClassification(nn.Module):
    """The base model under its own name, so that its tensors keep the checkpoint's names, and the head `bpsom`.

    Args:
        prefix: that name: `bert`, `roberta`, `transformer` ...
        pooling: the token whose state is classified: the first ([CLS]), or the last that is not padding.
    """

    bpsom: BPSOMHead

    def __init__(self, base: nn.Module, head: BPSOMHead, config: Any, prefix: str, pooling: Pooling) -> None:
        super().__init__()
        setattr(self, prefix, base)
        self.bpsom = head
        self.config, self.base_model_prefix, self.pooling = config, prefix, pooling

    @classmethod
    def of(cls, model: PreTrainedModel, **head_settings: Any) -> BPSOMForSequenceClassification:
        """Take over the base model of a transformers classifier; its own head, and a pooler, are left behind.

        Raises:
            ModelError: it does not tell classes apart, or not by the state of one token.
        """
        class_name, config = type(model).__name__, cast(Any, model.config)
        base, prefix = base_model(model), str(model.base_model_prefix)
        if not class_name.endswith("ForSequenceClassification") or base is model:
            raise ModelError(
                f"bpsom: {class_name} is not a classifier of texts; load it as ...ForSequenceClassification."
            )
        if config.num_labels < 2 or config.problem_type in ("regression", "multi_label_classification"):
            asked = config.problem_type or "regression"
            raise ModelError(
                f"bpsom: {class_name} has {config.num_labels} outputs for {asked.replace('_', ' ')}; its map needs each text to "
                "have one of at least two classes."
            )
        if config.is_encoder_decoder:
            raise ModelError(
                f"bpsom: {class_name} is an encoder-decoder, of which no one token's state stands for the text; use an encoder "
                "such as BERT, or a GPT-like model."
            )
        pooling: Pooling = "last" if isinstance(model, LastTokenClassifier) or not sees_ahead(model) else "first"
        drop_pooler(base)
        head = BPSOMHead(_width(base), config.num_labels, **head_settings)
        return cls(base, head.to(next(base.parameters()).device), config, prefix, pooling).train(model.training)

    def forward(
        self, input_ids: Tensor | None = None, labels: Tensor | None = None, **inputs: Any
    ) -> SequenceClassifierOutput:
        inputs |= {"input_ids": input_ids, "return_dict": True}
        given = {name: value for name, value in inputs.items() if value is not None}
        if self.pooling == "last":
            outputs: Any = LastTokenClassifier.forward(cast(Any, self), **given)
            pooled: Tensor = outputs.logits
        else:
            outputs = base_model(self)(**given)
            pooled = outputs[0][:, 0]
        logits = self.bpsom(pooled, labels)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return SequenceClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=outputs.get("hidden_states"),
            attentions=outputs.get("attentions"),
        )

    def score(self, state: Tensor) -> Tensor:
        """What `LastTokenClassifier` makes of the last token's state: here nothing, the head comes later."""
        return state

    def set_attn_implementation(self, implementation: Any) -> None:
        """As of every transformers model."""
        cast(Any, base_model(self)).set_attn_implementation(implementation)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors, for `from_pretrained` of this class; the map is in it."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        head, som, config = self.bpsom, self.bpsom.som, self.config
        write_json(
            folder / CONFIG,
            {
                "model_type": MODEL_TYPE,
                "architectures": [type(self).__name__],
                "fairtune": __version__,
                "id2label": {str(number): label for number, label in config.id2label.items()},
                "label2id": config.label2id,
                "base_model_prefix": self.base_model_prefix,
                "pooling": self.pooling,
                "head": {
                    "features": head.hidden.in_features, "classes": head.out.out_features, "hidden": head.units,
                    "grid": [som.grid.columns, som.grid.rows], "alpha": head.alpha, "reliability": head.reliability,
                    "topology": som.grid.topology, "update": som.mode,
                },
                "base": json.loads(config.to_json_string(use_diff=False)),
            },
        )  # fmt: skip
        save_model(self, str(folder / WEIGHTS))

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> BPSOMForSequenceClassification:
        """Read what `save_pretrained` wrote, however many units were pruned.

        Raises:
            ModelError: the folder has no such model, or a damaged one.
        """
        folder, what = Path(folder), str(folder)
        check_folder(what, folder)
        written = read_settings(what, folder / CONFIG)
        if written.get("model_type") != MODEL_TYPE:
            raise ModelError(
                f"{folder}: {CONFIG} is of a {written.get('model_type')}, not of a model with a BP-SOM head; load it with plain "
                "transformers."
            )
        with explain_failure(f"{folder}: the model is damaged or of another version of the libraries"):
            model = _empty(written, what)
            load_model(model, str(folder / WEIGHTS))
        return model.eval()


def drop_pooler(base: nn.Module) -> None:
    """Take a pooler off, which would never get a gradient; the head stands in its place."""
    if isinstance(getattr(base, "pooler", None), nn.Module):
        base._modules["pooler"] = None


@torch.no_grad()
def _width(base: nn.Module) -> int:
    """How wide the state of a token is; a config's `hidden_size` is not always it."""
    device = next(base.parameters()).device
    with evaluating(base):
        return int(base(input_ids=torch.zeros(1, 2, dtype=torch.int64, device=device))[0].shape[-1])


def active_head(model: nn.Module) -> BPSOMHead:
    """The head that the model computes with, also inside PEFT's wrapper, which keeps the first state in a copy.

    Raises:
        ModelError: there is not one.
    """
    found = [
        module
        for name, module in model.named_modules()
        if isinstance(module, BPSOMHead) and ".original_module" not in f".{name}"
    ]
    if len(found) != 1:
        raise ModelError(f"bpsom: {type(model).__name__} has {len(found)} heads of BP-SOM that are in use, not one.")
    return found[0]


def _empty(written: dict[str, Any], what: str) -> BPSOMForSequenceClassification:
    values, settings = dict(written["base"]), dict(written["head"])
    config = make_config(values.pop("model_type"), values, what)
    with torch.random.fork_rng(devices=[]):
        base = draw_network(AutoModel, config, what)
    drop_pooler(base)
    head = BPSOMHead(settings.pop("features"), settings.pop("classes"), **settings)
    return BPSOMForSequenceClassification(base, head, config, written["base_model_prefix"], written["pooling"])
