"""Finding the feed-forward weights of a model's transformer blocks, by their shapes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from fairtune.core.errors import ModelError
from fairtune.models.attention import attention_layers, block_of
from fairtune.models.split_projection import is_projection, rows_of


@dataclass(frozen=True)
class FeedForward:
    """One linear map of a feed-forward layer.

    Args:
        pieces: how many matrices its rows hold one after another (a gate and what it gates).
    """

    name: str
    block: int
    module: nn.Module
    pieces: int


def feed_forward_weights(model: nn.Module) -> list[FeedForward]:
    """Every linear map of every feed-forward layer, in the order of the model: those of a block that are outside its attention
    and lead from the model's width to another, or back.
    """
    layers = attention_layers(model)
    numbers = {block_of(layer.name): layer.block for layer in layers}
    width = layers[0].of("q")[0].weight().shape[1]
    inside = tuple(f"{layer.name}." for layer in layers)
    shapes = {
        name: (module, *rows_of(module).shape)
        for name, module in model.named_modules()
        if is_projection(module) and block_of(name) in numbers and not name.startswith(inside)
    }
    back = {block_of(name): given for name, (_, rows, given) in shapes.items() if rows == width != given}
    found = []
    for name, (module, rows, given) in shapes.items():
        block = block_of(name)
        if block in back and (rows, given) != (width, width) and width in (rows, given):
            pieces = 1 if rows == width else rows // back[block]
            found.append(FeedForward(name, numbers[block], module, pieces))
    if not found:
        raise ModelError(
            f"{type(model).__name__}: no feed-forward layers were found in its blocks, for `ffn: orthogonal`."
        )
    return found
