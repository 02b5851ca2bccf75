"""An encoder whose answer is one vector for each text: the mean of its last states."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn
from transformers import PreTrainedModel

from fairtune.core.errors import ModelError
from fairtune.models.model_parts import Batch, evaluating, text_encoder


class PooledEncoder(nn.Module):
    """The encoder of a classifier without its head; tensors keep the names that they have in the classifier."""

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        encoder = text_encoder(network)
        self.place = next((name for name, module in network.named_modules() if module is encoder), "")
        if not self.place or "." in self.place or not isinstance(encoder, PreTrainedModel):
            raise ModelError(
                f"{type(network).__name__} has no encoder that stands alone; use a BERT-like or GPT-like model."
            )
        self.add_module(self.place, encoder)
        self.config, self.base_model_prefix = network.config, network.base_model_prefix

    @property
    def encoder(self) -> PreTrainedModel:
        return cast(PreTrainedModel, self.get_submodule(self.place))

    def forward(self, **inputs: Tensor) -> Tensor:
        """The mean of the last states over the tokens of each text."""
        states: Tensor = cast(Any, self.encoder)(**inputs).last_hidden_state.float()
        real = inputs["attention_mask"][..., None].float()
        return (states * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)

    def save_pretrained(self, folder: Path) -> None:
        """Save the encoder as transformers saves one; `AutoModel` loads it."""
        self.encoder.save_pretrained(folder)


def freeze_unread(model: PooledEncoder, batch: Batch) -> tuple[str, ...]:
    """Freeze what the mean of the last states does not depend on, such as a pooler, by a batch's gradients; returns the names."""
    with evaluating(model):
        model(**{name: part for name, part in batch.items() if name != "labels"}).sum().backward()
    unread = tuple(name for name, parameter in model.named_parameters() if parameter.grad is None)
    for name, parameter in model.named_parameters():
        parameter.grad = None
        if name in unread:
            parameter.requires_grad_(False)
    return unread
