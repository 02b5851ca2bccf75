"""New weights with orthonormal rows for the query and key projections of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from fairtune.core.errors import ModelError, RunFailure
from fairtune.core.seeding import derive
from fairtune.models.attention import Projection, attention_layers, block_numbers, freeze
from fairtune.models.attention_geometry import orthogonality_error
from fairtune.models.declarations import Declared
from fairtune.models.feed_forward import FeedForward, feed_forward_weights
from fairtune.models.split_projection import rows_of

if TYPE_CHECKING:
    from fairtune.methods.orthogonal_qk import OrthogonalQKConfig

TOLERANCE = 1e-5
"""Largest allowed |W W^T - I| of a head in fp32."""


RANDOM = ("headwise_random", "global_random", "normal")


def orthonormal_rows(heads: Tensor, where: str = "weight") -> Tensor:
    """The rows of each head made orthonormal within the space they span: reduced QR of the head's transpose, sign-fixed.

    Args:
        heads: of shape [heads, head_dim, hidden].
        where: names the weight in messages.
    """
    rows, hidden = heads.shape[-2:]
    if rows > hidden:
        raise ModelError(
            f"{where}: {rows} rows cannot be orthonormal in {hidden} dimensions; its head_dim (or for a global init, all of "
            f"its heads together) exceeds the hidden size. Use init: normal or keep, or headwise instead of global."
        )
    q, r = torch.linalg.qr(heads.detach().double().cpu().transpose(-2, -1), mode="reduced")
    signs = torch.where(torch.diagonal(r, dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(q.dtype)
    new: Tensor = (q * signs.unsqueeze(-2)).transpose(-2, -1)
    error = orthogonality_error(new.to(torch.float32))
    if not bool((error <= TOLERANCE).all()):
        raise RunFailure(f"{where}: heads are not orthonormal after QR (worst |W W^T - I| is {float(error.max()):.2g})")
    return new


def orthogonalize_heads_(weight: Tensor, num_heads: int) -> Tensor:
    """Make the rows of each head of a bare weight orthonormal, in place; the published `apply_head_wise_orthogonal_`.

    Args:
        weight: [heads x head_dim, hidden], as the query or key projection of one layer has it. It is returned.

    Raises:
        ModelError: it has no such heads, or a head has more rows than columns.
    """
    rows, columns = weight.shape if weight.ndim == 2 else (0, 0)
    if num_heads < 1 or not weight.is_floating_point() or not rows or rows % num_heads or rows // num_heads > columns:
        raise ModelError(
            f"orthogonalize_heads_: found a weight of shape {list(weight.shape)} ({weight.dtype}) and num_heads {num_heads!r}; "
            "allowed: a matrix of floats, [num_heads x head_dim, hidden], with no head_dim above hidden."
        )
    if not weight.isfinite().all():
        raise ModelError("orthogonalize_heads_: the weight has values that are not finite.")
    new = orthonormal_rows(weight.detach().reshape(num_heads, -1, weight.shape[1])).reshape(weight.shape)
    with torch.no_grad():
        return weight.copy_(new.to(weight))


def semi_orthogonal(weight: Tensor, where: str = "weight") -> Tensor:
    """A matrix with orthonormal rows, or orthonormal columns if it is taller than wide."""
    tall = weight.shape[0] > weight.shape[1]
    new = orthonormal_rows((weight.t() if tall else weight).unsqueeze(0), where)[0]
    return new.t() if tall else new


def initialise(model: nn.Module, config: OrthogonalQKConfig, seed: int) -> None:
    """Give the chosen projections their new weights, and freeze them if they are to be frozen."""
    blocks = _chosen_blocks(model, config)

    def stream(*purpose: object) -> torch.Generator:
        """One for each weight, so that choosing layers or parts changes no other draw."""
        return torch.Generator().manual_seed(derive(seed, "orthogonal_qk", *purpose))

    if config.ffn:
        for number, weight in enumerate(feed_forward_weights(model)):
            if weight.block in blocks:
                _orthogonalise(weight, config, stream("ffn", number))
    if config.parts:
        for number, layer in enumerate(attention_layers(model)):
            for place, projection in enumerate(layer.projections if layer.block in blocks else ()):
                if projection.part in config.parts:
                    where = f"{layer.name} ({projection.part})"
                    _initialise_projection(projection, config, where, stream("attention", number, place))
        if config.freeze:
            freeze(model, blocks, "".join(config.parts))


def changed_tensors(model: nn.Module, config: OrthogonalQKConfig) -> list[Declared]:
    """The rows of Q and K in the chosen blocks, where `init` or `scale` changes them, and the feed-forward weights."""
    blocks, found = _chosen_blocks(model, config), []
    if config.ffn:
        found += [Declared(f"{w.name}.weight") for w in feed_forward_weights(model) if w.block in blocks]
    if config.parts and (config.init != "keep" or config.scale is not None):
        layers = [layer for layer in attention_layers(model) if layer.block in blocks]
        found += [projection.home for layer in layers for projection in layer.of("".join(config.parts))]
    return found


def _chosen_blocks(model: nn.Module, config: OrthogonalQKConfig) -> set[int]:
    count = len(block_numbers(model))
    chosen = config.blocks(count)
    if beyond := sorted(block for block in chosen if block >= count):
        raise ModelError(
            f"orthogonal_qk: layers names block {beyond[0]}, but {type(model).__name__} has {count} blocks, 0 to {count - 1}."
        )
    return chosen


def _initialise_projection(
    projection: Projection, config: OrthogonalQKConfig, where: str, generator: torch.Generator
) -> None:
    if config.init == "keep" and config.scale is None:
        return
    old = projection.weight().double().cpu()
    new = torch.randn(old.shape, generator=generator, dtype=old.dtype) if config.init in RANDOM else old
    if config.init == "normal":
        new = new * config.std
    elif config.init != "keep":
        heads = 1 if config.init.startswith("global") else projection.heads
        new = orthonormal_rows(new.reshape(heads, -1, old.shape[1]), where).reshape(old.shape)
    if config.scale is not None:
        per_head = nn.functional.normalize(new, dim=1).reshape(projection.heads, -1, new.shape[1])
        if config.scale == "pretrained":
            per_head = per_head * old.norm(dim=1).reshape(projection.heads, -1).mean(dim=1)[:, None, None]
        new = per_head.reshape(new.shape)
    projection.write(new)


def _orthogonalise(weight: FeedForward, config: OrthogonalQKConfig, generator: torch.Generator) -> None:
    every = rows_of(weight.module).detach()
    old = every.double().cpu()
    drawn = config.init in RANDOM
    source = torch.randn(old.shape, generator=generator, dtype=old.dtype) if drawn else old
    new = torch.cat([semi_orthogonal(piece, weight.name) for piece in source.chunk(weight.pieces)])
    if config.scale == "pretrained":
        new = new * (old.norm(dim=1).mean() / new.norm(dim=1).mean())
    every.copy_(new.to(every))
    if config.freeze:
        weight.module.get_parameter("weight").requires_grad_(False)
