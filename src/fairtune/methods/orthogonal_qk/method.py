"""Query and key projections re-initialised and frozen."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fairtune.core.errors import ModelError
from fairtune.core.seeding import derive
from fairtune.methods.base import Method
from fairtune.methods.orthogonal_qk.config import OrthogonalQKConfig
from fairtune.methods.orthogonal_qk.orthogonal import orthonormal_rows, semi_orthogonal
from fairtune.models.attention import Projection, attention_layers, block_numbers, freeze
from fairtune.models.declarations import Declared
from fairtune.models.feed_forward import FeedForward, feed_forward_weights
from fairtune.models.split_projection import rows_of

RANDOM = ("headwise_random", "global_random", "normal")


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
