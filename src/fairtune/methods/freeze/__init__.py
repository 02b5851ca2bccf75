"""Freeze: parts of the model keep the checkpoint's weights."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairtune.methods.arms import register_arm
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register


class FreezeConfig(MethodConfig):
    """Freeze parts of the model as the checkpoint has them; an output head that shares the embeddings is frozen with them."""

    parts: Annotated[tuple[Literal["embeddings", "lower", "upper"], ...], Field(min_length=1, max_length=3)] = Field(
        ("embeddings",),
        description="embeddings (words, positions, their normalisation), and the lower or upper half of the layers; what is "
        "above the layers always trains.",
    )

    @property
    def freezes_embeddings(self) -> bool:  # type: ignore[override]
        return "embeddings" in self.parts


register("freeze", FreezeConfig, "fairtune.methods.freeze.method:Freeze", claims=["parts that are frozen"])
register_arm(
    "freeze-embeddings",
    "The embeddings frozen as the checkpoint has them, all else trains: control for OELM with frozen embeddings.",
    [{"freeze": {"parts": ["embeddings"]}}],
)
