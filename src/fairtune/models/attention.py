"""Finding the query, key and value projections of a model's attention layers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from fairtune.errors import ModelError

PROJECTIONS = ("query", "key", "value")


@dataclass(frozen=True)
class AttentionLayer:
    """One attention layer's projections, each with weight [heads x head_dim, hidden].

    Args:
        name: of the attention module inside the model.
    """

    name: str
    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    heads: int

    @property
    def head_dim(self) -> int:
        return self.query.out_features // self.heads


def attention_layers(model: nn.Module) -> list[AttentionLayer]:
    """Every attention layer of a BERT-like model, in the order of the model.

    Raises:
        ModelError: none was found, naming what looks like attention.
    """
    found = []
    for name, module in model.named_modules():
        query, key, value = (getattr(module, part, None) for part in PROJECTIONS)
        heads = getattr(module, "num_attention_heads", None)
        if heads and isinstance(query, nn.Linear) and isinstance(key, nn.Linear) and isinstance(value, nn.Linear):
            found.append(AttentionLayer(name, query, key, value, int(heads)))
    if not found:
        looks = sorted({type(m).__name__ for m in model.modules() if "attention" in type(m).__name__.lower()})
        raise ModelError(
            f"{type(model).__name__}: no attention layer with separate query, key and value projections was found "
            f"(attention modules: {', '.join(looks) or 'none'}); BERT-like models are supported."
        )
    return found
