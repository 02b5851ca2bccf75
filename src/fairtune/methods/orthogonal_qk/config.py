"""The settings of `orthogonal_qk`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from fairtune.methods.registry import MethodConfig


class OrthogonalQKConfig(MethodConfig):
    """Re-initialise the query and key projections of every attention layer and freeze them (OELM)."""

    init: Literal["keep", "headwise", "normal"] = Field(
        "headwise",
        description="New weights of Q and K. keep: the checkpoint's as they are; headwise: each head's rows made "
        "orthonormal by QR of the checkpoint's, which keeps the row space; normal: drawn from N(0, std).",
    )
    freeze: bool = Field(True, description="Freeze the weights and biases of Q and K.")
    std: Annotated[float, Strict()] = Field(0.02, gt=0, description="Standard deviation for `init: normal`.")
