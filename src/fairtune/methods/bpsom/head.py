"""`BPSOMHead`: a classifier's head whose hidden activations a self-organising map watches, and pulls together by class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from fairtune.core.errors import ModelError
from fairtune.core.grid import Topology
from fairtune.core.seeding import derive
from fairtune.models.model_parts import evaluating
from fairtune.som.labels import Labelling
from fairtune.som.som import SOM


def pulled(z: Tensor, used: Tensor, pull: Tensor, alpha: float) -> Tensor:
    """The pre-activations as they are; on the way back the rows in use get (1 - alpha) of their gradient, and the pull.

    Args:
        used: which rows, [batch]; the gradient of the others is not touched.
        pull: what is added to a row's gradient, [batch, units]; descent goes against it.
    """
    same: Tensor = _Pull.apply(z, used, pull.to(z.dtype), alpha)  # type: ignore[no-untyped-call]
    return same


class _Pull(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, used: Tensor, pull: Tensor, alpha: float) -> Tensor:
        ctx.save_for_backward(used, pull)
        ctx.alpha = alpha
        return z.view_as(z)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        used, pull = ctx.saved_tensors
        return torch.where(used[:, None], (1 - ctx.alpha) * gradient + pull, gradient), None, None, None


class BPSOMHead(nn.Module):
    """Linear, sigmoid, Linear, with a map on the activations between.

    In training mode, `head(x, labels)` teaches the map and lets its reliable prototypes pull: dL/dz of an example becomes
    (1 - alpha) dL/dz + alpha r (h - v) / batch, where v is the nearest prototype labelled with the example's class, after the
    map has learned from the batch, and r its reliability. Until `label` has given the map labels, it only learns.

    Args:
        hidden: units between.
        grid: cells per side, or (columns, rows).
        alpha: 0 lets the map watch only.
        reliability: the least that a prototype must have to pull.

    Attributes:
        radius: and rate, with which the map learns; whoever trains lowers them, see `fairtune.som.schedules`.
        loss_scale: what the loss is multiplied by before it goes back, where it is: accumulation, a loss scaler.
    """

    used: Tensor
    seen: Tensor

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        hidden: int = 128,
        grid: int | Sequence[int] = 20,
        alpha: float = 0.25,
        reliability: float = 0.95,
        topology: Topology = "rectangular",
        update: Literal["batch", "sequential"] = "batch",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if min(features, hidden) < 1 or classes < 2 or not (0 <= alpha <= 1 and 0 <= reliability <= 1):
            raise ModelError(
                f"BPSOMHead: features is {features}, hidden {hidden}, classes {classes}, alpha {alpha}, reliability {reliability}; "
                "the first two are at least 1, classes at least 2, the others shares from 0 to 1."
            )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(seed, "bpsom", "head"))
            self.hidden = nn.Linear(features, hidden)
            self.out = nn.Linear(hidden, classes)
        self.som = SOM(hidden, grid, classes, topology=topology, update=update, seed=derive(seed, "bpsom", "map"))
        self.register_buffer("used", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        self.alpha, self.reliability = alpha, reliability
        self.radius, self.rate, self.loss_scale = 2, 0.2, 1.0
        self._watches: bool | None = None

    @property
    def units(self) -> int:
        """Units between, those that were pruned not counted."""
        return self.hidden.out_features

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Tensor:
        """The logits of encoded texts, [batch, features].

        Args:
            labels: classes from 0; used only while gradients are taken in training mode.
        """
        z: Tensor = self.hidden(x)
        if labels is not None and self.training and torch.is_grad_enabled():
            used, pull = self._find_pull(torch.sigmoid(z.detach()), labels)
            z = pulled(z, used, pull, self.alpha) if self.alpha else z
        logits: Tensor = self.out(torch.sigmoid(z))
        return logits

    def activations(self, x: Tensor) -> Tensor:
        """What the map sees, [batch, units]."""
        return torch.sigmoid(self.hidden(x))

    def watch(self) -> None:
        """Let the map learn from the next forward and from no other, for loops that go through a batch more than once.

        Until this is called it learns from every one. The pull is in each backward all the same.
        """
        self._watches = True

    def label(self, batches: Iterable[tuple[Tensor, Tensor]]) -> Labelling:
        """A labelling pass: every cell gets the class of most of its examples. Returns what it found, to prune by.

        Args:
            batches: encoded texts and their classes, all training examples once.
        """
        labelling = self.som.labelling()
        with evaluating(self), torch.no_grad():
            for x, classes in batches:
                labelling.add(self.activations(x), classes)
        return labelling.finish()

    def take_use(self) -> float:
        """The share of the examples since this was last asked for which the map's error was used, or would have been."""
        share = float(self.used) / max(1, int(self.seen))
        self.used.zero_(), self.seen.zero_()
        return share

    @torch.no_grad()
    def _find_pull(self, h: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Teach the map; which rows it pulls, and how."""
        som = self.som
        learns, self._watches = self._watches is not False, None if self._watches is None else False
        winners, partial = som.nearest(h, labels)
        cells = partial.cells.clamp(min=0)  # -1 is no cell, not the last one
        reliability = som.reliability[cells]
        used = (partial.cells >= 0) & (reliability >= self.reliability)
        if learns:
            som.update(h, self.radius, self.rate, winners)
            self.used += used.sum()
            self.seen += len(h)
        strength = self.loss_scale * self.alpha / len(h) * reliability
        return used, strength[:, None] * (h.to(som.prototypes.dtype) - som.prototypes[cells])
