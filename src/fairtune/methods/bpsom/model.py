"""Any transformers classifier with a `BPSOMHead` in place of its own head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from fairtune.core.errors import ModelError
from fairtune.methods.bpsom.head import BPSOMHead
from fairtune.models.causal_classifier import LastTokenClassifier, sees_ahead
from fairtune.models.evaluation_mode import evaluating
from fairtune.models.model_parts import base_model

Pooling = Literal["first", "last"]


class BPSOMForSequenceClassification(nn.Module):
    """The base model under its own name, so that its tensors keep the checkpoint's names, and the head `bpsom`.

    Args:
        prefix: that name: `bert`, `roberta`, `transformer` ...
        pooling: the token whose state is classified: the first ([CLS]), or the last that is no padding.
    """

    bpsom: BPSOMHead

    def __init__(self, base: nn.Module, head: BPSOMHead, config: Any, prefix: str, pooling: Pooling) -> None:
        super().__init__()
        setattr(self, prefix, base)
        self.bpsom = head
        self.config, self.base_model_prefix, self.pooling = config, prefix, pooling

    @classmethod
    def of(
        cls,
        model: PreTrainedModel,
        *,
        hidden: int = 128,
        grid: int | Sequence[int] | None = 20,
        alpha: float = 0.25,
        reliability: float = 0.95,
        topology: Literal["rectangular", "hexagonal"] = "rectangular",
        update: Literal["batch", "sequential"] = "batch",
        seed: int = 0,
    ) -> BPSOMForSequenceClassification:
        """Take over the base model of a transformers classifier; its own head, and a pooler, are left behind.

        Raises:
            ModelError: it does not tell classes apart, or not by the state of one token.
        """
        kind, config = type(model).__name__, cast(Any, model.config)
        base, prefix = base_model(model), str(model.base_model_prefix)
        if not kind.endswith("ForSequenceClassification") or base is model:
            raise ModelError(f"bpsom: {kind} is no classifier of texts; load it as ...ForSequenceClassification.")
        if config.num_labels < 2 or config.problem_type in ("regression", "multi_label_classification"):
            asked = config.problem_type or "regression"
            raise ModelError(
                f"bpsom: {kind} has {config.num_labels} outputs for {asked.replace('_', ' ')}; its map needs each text to have "
                "one of at least two classes."
            )
        if config.is_encoder_decoder:
            raise ModelError(
                f"bpsom: {kind} is an encoder-decoder, of which no one token's state stands for the text; use an encoder such as "
                "BERT, or a GPT-like model."
            )
        pooling: Pooling = "last" if isinstance(model, LastTokenClassifier) or not sees_ahead(model) else "first"
        drop_pooler(base)
        head = BPSOMHead(
            _width(base), config.num_labels, hidden=hidden, grid=grid, alpha=alpha, reliability=reliability, topology=topology,
            update=update, seed=seed,
        )  # fmt: skip
        return cls(base, head.to(next(base.parameters()).device), config, prefix, pooling).train(model.training)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        **more: Any,
    ) -> SequenceClassifierOutput:
        more |= {
            "input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids,
            "position_ids": position_ids, "inputs_embeds": inputs_embeds, "return_dict": True,
        }  # fmt: skip
        given = {name: value for name, value in more.items() if value is not None}
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

    def set_attn_implementation(self, kind: Any) -> None:
        """As of every transformers model."""
        cast(Any, base_model(self)).set_attn_implementation(kind)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors, for `from_pretrained` of this class; the map is in it."""
        from fairtune.methods.bpsom.saving import save

        save(self, Path(folder))

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> BPSOMForSequenceClassification:
        """Read what `save_pretrained` wrote, however many units were pruned.

        Raises:
            ModelError: the folder has no such model, or a damaged one.
        """
        from fairtune.methods.bpsom.saving import load

        return load(Path(folder))


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


def classes_of(model: nn.Module) -> list[str]:
    """Names of the labels, in the order of the outputs."""
    names = cast(Any, model).config.id2label
    return [str(names[number]) for number in sorted(names)]


@torch.no_grad()
def same_answers(one: nn.Module, other: nn.Module) -> bool:
    """Whether two classifiers of the same base give the same logits, to rounding, on a made text."""
    embeddings: Any = cast(Any, base_model(one)).get_input_embeddings()
    rows, device = int(embeddings.weight.shape[0]), embeddings.weight.device
    ids = (torch.arange(12, device=device).reshape(2, 6) * 7 + rows // 3) % rows
    mask = torch.ones_like(ids)
    first, second = (model(input_ids=ids, attention_mask=mask).logits.float() for model in (one, other))
    return torch.allclose(first, second, atol=1e-4, rtol=1e-3)
