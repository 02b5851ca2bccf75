"""A frozen encoder with a linear head as one network: it is called as any classifier is, and lies in a folder as two parts.

The encoder is saved as the plain transformers model that it is, which `AutoModel` loads; the head as safetensors and JSON.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from fairtune.core.errors import ModelError
from fairtune.learners.linear_probe import LinearProbe
from fairtune.learners.registry import load_learner
from fairtune.models.model_parts import text_encoder


class ProbeNetwork(nn.Module):
    """The mean of an encoder's last states, scaled to length 1, and a linear head.

    Args:
        encoder: of transformers, without a head.
    """

    def __init__(self, encoder: Any, probe: LinearProbe) -> None:
        super().__init__()
        self.encoder, self.probe = encoder, probe
        self.head = nn.Linear(probe.features, probe.classes)
        with torch.no_grad():
            self.head.weight.copy_(torch.from_numpy(probe.arrays["weight"]))
            self.head.bias.copy_(torch.from_numpy(probe.arrays["bias"]))
        self.requires_grad_(False)

    @property
    def config(self) -> Any:
        """What predictors ask of a classifier."""
        return SimpleNamespace(num_labels=self.probe.classes)

    def forward(self, **batch: Tensor) -> Any:
        states = self.encoder(**batch).last_hidden_state.float()
        real = batch["attention_mask"][..., None].float()
        means = (states * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        lengths = means.norm(dim=1, keepdim=True)
        return SimpleNamespace(logits=self.head(means / torch.where(lengths == 0, 1.0, lengths)))

    def save_pretrained(self, folder: Path) -> None:
        """Both parts, each as its own kind of file."""
        self.encoder.save_pretrained(folder)
        self.probe.save(Path(folder))


def read_probe(folder: Path, loaded: nn.Module, classes: int) -> ProbeNetwork:
    """The network in a folder.

    Args:
        loaded: the transformers model of the folder, of which only the encoder counts.

    Raises:
        ModelError: there is no head for it, or none for so many classes.
    """
    probe, _ = load_learner(folder)
    encoder: Any = text_encoder(loaded)
    width = int(getattr(encoder.config.get_text_config(), "hidden_size", -1))
    if not isinstance(probe, LinearProbe) or probe.classes != classes or probe.features != width:
        raise ModelError(f"{folder}: its head does not belong to its encoder and its classes.")
    return ProbeNetwork(encoder, probe)
