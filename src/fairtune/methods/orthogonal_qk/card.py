"""`orthogonalize_qk`: the method on a plain transformers model, in the user's own loop, in `Trainer` or under PEFT."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from fairtune.core.errors import RunFailure
from fairtune.methods.orthogonal_qk import OrthogonalQKConfig
from fairtune.methods.orthogonal_qk.weights import initialise
from fairtune.models.attention import Projection, attention_layers
from fairtune.models.attention_geometry import describe_attention, measure_pass, take_checkpoint_facts
from fairtune.models.flops import describe_costs
from fairtune.models.model_parts import Batch
from fairtune.models.parameters import ParameterCount, count_parameters


@dataclass(frozen=True)
class OrthogonalCard:
    """What `orthogonalize_qk` did to a model.

    Args:
        attention: every head's geometry now and before, see `fairtune.models.attention_geometry`.
        costs: bytes saved; with a batch also matrix products and the bound on the speed-up.
        frozen: digests of the frozen projections by attention layer and part.
    """

    parameters: ParameterCount
    attention: dict[str, Any]
    costs: dict[str, Any]
    frozen: dict[str, str]

    def verify(self, model: nn.Module) -> None:
        """Prove that every frozen projection still has the bits it had; also through adapters that wrap the model.

        Raises:
            RunFailure: one changed, or is gone.
        """
        now = _digests(model)
        moved = [name for name, digest in self.frozen.items() if now.get(name) != digest]
        if moved:
            raise RunFailure(f"{len(moved)} frozen projections changed: {', '.join(moved[:3])}")

    def __str__(self) -> str:
        found, count = self.attention["summary"], self.parameters
        lines = [
            f"{found['changed']} of {found['projections']} query and key projections changed, {found['frozen']} frozen",
            f"{count.trainable:,} of {count.total:,} parameters train ({100 * count.trainable_share:.2f} %)",
            f"worst |W W^T - I| {found['worst_orthogonality_error']:.2g}, row norm {found['row_norm']:.3g} "
            f"(was {found['checkpoint_row_norm']:.3g}), cosine of row spaces {found['row_space_cosine']:.3f}",
        ]
        if "speedup_bound" in self.costs:
            lines.append(f"matrix products allow a speed-up of at most {self.costs['speedup_bound']:.3f}")
        return "\n".join(lines)


def orthogonalize_qk(
    model: nn.Module, init: str = "headwise", *, seed: int = 0, batch: Batch | None = None, **settings: Any
) -> OrthogonalCard:
    """Re-initialise and freeze the query and key projections of a transformers model, in place.

    Args:
        batch: a real one, with labels; then the card also has logits, matrix products and the bound on the speed-up.
        settings: of the method `orthogonal_qk`: freeze, layers, parts, scale, std, ffn; `fairtune methods orthogonal_qk`
            explains them.
    """
    config = OrthogonalQKConfig.read({"init": init, "seed": seed, **settings}, "orthogonalize_qk")
    before = take_checkpoint_facts(model, batch)
    initialise(model, config, seed)
    measured = measure_pass(model, batch)
    return OrthogonalCard(
        count_parameters(model),
        describe_attention(model, before, measured),
        describe_costs(model, before.measured.flops, measured.flops),
        _digests(model),
    )


def _digests(model: nn.Module) -> dict[str, str]:
    """A digest of each frozen query and key projection, named by its place, which wrappers do not change."""
    return {
        f"attention {number}, {projection.part} {place}": _digest(projection)
        for number, layer in enumerate(attention_layers(model))
        for place, projection in enumerate(layer.of("qk"))
        if not projection.trains
    }


def _digest(projection: Projection) -> str:
    digest = hashlib.sha256()
    for tensor in (projection.weight(), projection.bias()):
        if tensor is not None:
            digest.update(tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
