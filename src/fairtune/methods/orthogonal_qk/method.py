"""OELM in a run: the query and key projections get new weights with orthonormal rows, and are frozen."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fairtune.core.errors import ModelError, RunFailure
from fairtune.core.seeding import derive
from fairtune.methods.base import Method
from fairtune.methods.orthogonal_qk import OrthogonalQKConfig
from fairtune.models.attention import Projection, attention_layers, block_numbers, freeze
from fairtune.models.attention_geometry import orthogonality_error
from fairtune.models.declarations import Declared
from fairtune.models.feed_forward import FeedForward, feed_forward_weights
from fairtune.models.split_projection import rows_of

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
        weight: [heads x head_dim, hidden], as the query or key projection of one layer has it.

    Returns:
        The weight.

    Raises:
        ModelError: it is no matrix, its rows cannot be divided among the heads, or a head has more rows than columns.
    """
    whole = isinstance(num_heads, int) and not isinstance(num_heads, bool) and num_heads > 0
    rows, columns = weight.shape if weight.ndim == 2 else (0, 0)
    if not whole or not weight.is_floating_point() or not rows or rows % num_heads or rows // num_heads > columns:
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


class OrthogonalQK(Method):
    config: OrthogonalQKConfig

    def prepare(self, model: nn.Module) -> nn.Module:
        blocks = self._blocks(model)
        if self.config.ffn:
            for number, weight in enumerate(feed_forward_weights(model)):
                if weight.block in blocks:
                    self._orthogonalise(weight, self._generator("ffn", number))
        if self.config.parts:
            for number, layer in enumerate(attention_layers(model)):
                for place, projection in enumerate(layer.projections if layer.block in blocks else ()):
                    if projection.part in self.config.parts:
                        where = f"{layer.name} ({projection.part})"
                        self._initialise(projection, where, self._generator("attention", number, place))
            if self.config.freeze:
                freeze(model, blocks, "".join(self.config.parts))
        return model

    def changes(self, model: nn.Module) -> Sequence[Declared]:
        """The rows of Q and K in the chosen blocks, where `init` or `scale` changes them, and the feed-forward weights."""
        blocks, found = self._blocks(model), []
        if self.config.ffn:
            found += [Declared(f"{w.name}.weight") for w in feed_forward_weights(model) if w.block in blocks]
        if self.config.parts and (self.config.init != "keep" or self.config.scale is not None):
            layers = [layer for layer in attention_layers(model) if layer.block in blocks]
            found += [projection.home for layer in layers for projection in layer.of("".join(self.config.parts))]
        return found

    def _blocks(self, model: nn.Module) -> set[int]:
        count = len(block_numbers(model))
        chosen = self.config.blocks(count)
        if beyond := sorted(block for block in chosen if block >= count):
            raise ModelError(
                f"orthogonal_qk: layers names block {beyond[0]}, but {type(model).__name__} has {count} blocks, 0 to {count - 1}."
            )
        return chosen

    def _generator(self, *purpose: object) -> torch.Generator:
        """A stream of its own for each weight, so that choosing layers or parts changes no other draw."""
        seed = self.seed if self.config.seed is None else self.config.seed
        return torch.Generator().manual_seed(derive(seed, "orthogonal_qk", *purpose))

    def _initialise(self, projection: Projection, where: str, generator: torch.Generator) -> None:
        init = self.config.init
        if init == "keep" and self.config.scale is None:
            return
        old = projection.weight().double().cpu()
        new = torch.randn(old.shape, generator=generator, dtype=old.dtype) if init in RANDOM else old
        if init == "normal":
            new = new * self.config.std
        elif init != "keep":
            heads = 1 if init.startswith("global") else projection.heads
            new = orthonormal_rows(new.reshape(heads, -1, old.shape[1]), where).reshape(old.shape)
        projection.write(self._scaled(new, old, projection.heads))

    def _scaled(self, new: Tensor, old: Tensor, heads: int) -> Tensor:
        """The new rows with the length that `scale` asks for."""
        if self.config.scale is None:
            return new
        per_head = torch.nn.functional.normalize(new, dim=1).reshape(heads, -1, new.shape[1])
        if self.config.scale == "pretrained":
            per_head = per_head * old.norm(dim=1).reshape(heads, -1).mean(dim=1)[:, None, None]
        return per_head.reshape(new.shape)

    def _orthogonalise(self, weight: FeedForward, generator: torch.Generator) -> None:
        every = rows_of(weight.module).detach()
        old = every.double().cpu()
        drawn = self.config.init in RANDOM
        source = torch.randn(old.shape, generator=generator, dtype=old.dtype) if drawn else old
        new = torch.cat([semi_orthogonal(piece, weight.name) for piece in source.chunk(weight.pieces)])
        if self.config.scale == "pretrained":
            new = new * (old.norm(dim=1).mean() / new.norm(dim=1).mean())
        every.copy_(new.to(every))
        if self.config.freeze:
            weight.module.get_parameter("weight").requires_grad_(False)
