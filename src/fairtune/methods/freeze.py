"""Freeze: parts of the model keep the checkpoint's weights; they are found by depth and not by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from fairtune.core.errors import ModelError
from fairtune.methods.arms import register_arm
from fairtune.methods.base import Method, Moment
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register

if TYPE_CHECKING:
    from torch import nn


class FreezeConfig(MethodConfig):
    """Freeze parts of the model as the checkpoint has them; an output head that shares the embeddings is frozen with them."""

    parts: Annotated[tuple[Literal["embeddings", "lower", "upper"], ...], Field(min_length=1, max_length=3)] = Field(
        ("embeddings",),
        description="embeddings (words, positions, their normalisation), and the lower or upper half of the layers; what is "
        "above the layers always trains.",
    )

    @property
    def freezes(self) -> frozenset[str]:
        return frozenset(self.parts)


@register
class Freeze(Method):
    name, config_class = "freeze", FreezeConfig
    excludes = frozenset({"parts that are frozen"})
    config: FreezeConfig

    def prepare(self, model: nn.Module) -> nn.Module:
        from fairtune.models.depth import find_depths

        depths = find_depths(model)
        frozen = [p for p in model.parameters() if depths.part(p) in self.config.parts]
        if not frozen:
            raise ModelError(
                f"freeze: the model has nothing in {' or '.join(self.config.parts)}, and {depths.layers} layers in all; name "
                "another part."
            )
        for parameter in frozen:
            parameter.requires_grad_(False)
        self._parameters = sum(p.numel() for p in frozen)
        head: Any = getattr(model, "get_output_embeddings", lambda: None)()
        self._tied = head is not None and any(head.weight is p for p in frozen)
        return model

    def after_step(self, moment: Moment) -> None:
        import torch

        if moment.step != 1:
            return
        parameters = {"parameters": torch.tensor([self._parameters])}
        moment.record("freeze", parameters, parts=list(self.config.parts), tied_head=self._tied)
        if self._tied:
            moment.warn("freeze: the output head shares its weight with the embeddings, so it is frozen too")


register_arm(
    "freeze-embeddings",
    "The embeddings frozen as the checkpoint has them, all else trains: control for OELM with frozen embeddings.",
    [{"freeze": {"parts": ["embeddings"]}}],
)
