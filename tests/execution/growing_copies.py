"""A plug-in in place of dropout, whose draws depend on who makes them: second copies of a batch are seen a little larger."""

from __future__ import annotations

from typing import Any

from fairtune.methods.base import Method
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register


class GrowingCopiesConfig(MethodConfig):
    """Tell the copies of an example apart."""

    @property
    def whole_batch(self) -> None:
        return None


class GrowingCopies(Method):
    def prepare(self, model: Any) -> Any:
        import torch

        from fairtune.models.model_parts import token_embeddings

        def grow(module: Any, _: Any, output: Any) -> Any:
            one = len(output) // 2
            return torch.cat([output[:one], 1.3 * output[one:]]) if module.training else None

        token_embeddings(model).register_forward_hook(grow)
        return model


register("growing_copies", GrowingCopiesConfig, f"{__name__}:GrowingCopies")
