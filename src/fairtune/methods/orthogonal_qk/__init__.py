"""OELM: re-initialise the query and key projections of every attention layer, and freeze them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from fairtune.methods.arms import register_arm
from fairtune.methods.base import Method
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register
from fairtune.settings.values import Number, Seed, Whole

if TYPE_CHECKING:
    from torch import nn

    from fairtune.models.declarations import Declared

MOST_LAYERS = 1000
_RANGE = r"^([0-9]{1,3})-([0-9]{1,3})$"


def _as_list(value: Any) -> Any:
    """A part by itself, or `qk`, stands for a list."""
    return list(value) if value in ("q", "k", "qk") else value


class OrthogonalQKConfig(MethodConfig):
    """Re-initialise the query and key projections of attention layers and freeze them (OELM), or do only one of the two."""

    init: Annotated[
        Literal["keep", "headwise", "headwise_random", "global", "global_random", "normal"],
        BeforeValidator(lambda given: "headwise" if given == "orthogonal" else given),
    ] = Field(
        "headwise",
        description="New weights of Q and K. keep: the checkpoint's as they are; headwise: each head's rows made "
        "orthonormal by QR of the checkpoint's, which keeps the row space (orthogonal, its published name, means the same); "
        "headwise_random: by QR of a Gaussian; "
        "global: all rows of the matrix orthonormal, by QR of the checkpoint's; global_random: by QR of a Gaussian; "
        "normal: drawn from N(0, std).",
    )
    freeze: bool = Field(True, description="Freeze the weights and biases of Q and K.")
    layers: (
        Literal["all"]
        | Annotated[str, Field(pattern=_RANGE, title="a range such as 0-3")]
        | Annotated[
            tuple[Annotated[Whole, Field(ge=0, lt=MOST_LAYERS)], ...], Field(min_length=1, max_length=MOST_LAYERS)
        ]
    ) = Field(
        "all",
        description="Transformer blocks to change, counted from 0: all, a range such as 0-3, or a list; an encoder's "
        "blocks come before a decoder's.",
    )
    parts: Annotated[tuple[Literal["q", "k"], ...], BeforeValidator(_as_list)] = Field(
        ("q", "k"), max_length=2, description="Which projections: q, k or both; none at all only beside `ffn`."
    )
    scale: Literal["unit", "pretrained"] | None = Field(
        None,
        description="Length of the new rows. unit: 1; pretrained: the mean row norm that the checkpoint's head has; null "
        "leaves what `init` gives: 1 after QR (as published), std x sqrt(hidden) for normal, the checkpoint's for keep.",
    )
    std: Number = Field(0.02, gt=0, le=1e6, description="Standard deviation for `init: normal`.")
    seed: Seed | None = Field(
        None, description="Seed of what is drawn at random, for every run alike; null draws with each run's own seed."
    )
    ffn: Literal[False, "orthogonal"] = Field(
        False,
        description="orthogonal: also make the feed-forward weights orthogonal (QR of the checkpoint's, or of a Gaussian "
        "where `init` draws at random) and freeze them if `freeze` is true; their biases stay trainable.",
    )

    @model_validator(mode="after")
    def _possible(self) -> OrthogonalQKConfig:
        if not self.parts and not self.ffn:
            raise ValueError("parts is empty, so nothing would change; name q or k, or set `ffn: orthogonal`")
        if len(set(self.parts)) < len(self.parts):
            raise ValueError("parts names the same part twice")
        if isinstance(self.layers, str) and (found := re.match(_RANGE, self.layers)):
            first, last = map(int, found.groups())
            if first > last:
                raise ValueError(f"layers is {self.layers}, a range that ends before it starts")
        return self

    @property
    def freezes(self) -> frozenset[str]:
        return frozenset({"projections"} if self.freeze else ())

    def blocks(self, count: int) -> set[int]:
        """The chosen blocks of a model that has so many; may name some that it has not."""
        if self.layers == "all":
            return set(range(count))
        if isinstance(self.layers, str):
            first, last = map(int, self.layers.split("-"))
            return set(range(first, last + 1))
        return set(self.layers)


@register
class OrthogonalQK(Method):
    name, config_class = "orthogonal_qk", OrthogonalQKConfig
    excludes = frozenset({"query and key projections"})
    config: OrthogonalQKConfig

    def prepare(self, model: nn.Module) -> nn.Module:
        from fairtune.methods.orthogonal_qk.weights import initialise

        initialise(model, self.config, self.seed if self.config.seed is None else self.config.seed)
        return model

    def changes(self, model: nn.Module) -> Sequence[Declared]:
        from fairtune.methods.orthogonal_qk.weights import changed_tensors

        return changed_tensors(model, self.config)


def _register(name: str, settings: dict[str, Any], frozen: str, trainable: str) -> None:
    """An arm with Q and K frozen, and its twin with the same start in which they train."""
    register_arm(name, frozen, [{"orthogonal_qk": settings}])
    register_arm(f"{name}-trainable", trainable, [{"orthogonal_qk": {**settings, "freeze": False}}])


_register(
    "freeze-pretrained",
    {"init": "keep"},
    "Q and K frozen as the checkpoint has them: control for freezing, without any new weights.",
    "Q and K kept and trainable, which changes nothing: an A/A control whose timing shows the noise.",
)
_register(
    "oelm-freeze",
    {"init": "headwise"},
    "OELM as published: each head's Q and K rows made orthonormal by QR of the checkpoint's, frozen; the method on trial.",
    "The start of oelm-freeze, but Q and K train: control for orthogonalising without freezing.",
)
_register(
    "oelm-random",
    {"init": "normal"},
    "Q and K drawn from N(0, 0.02), frozen: the published rival, which loses row space, row norm and orthogonality at once.",
    "The start of oelm-random, but Q and K train: control for whether training repairs random Q and K.",
)
_register(
    "oelm-random-unit",
    {"init": "normal", "scale": "unit"},
    "Gaussian Q and K with rows of norm 1, frozen: control for the small rows of oelm-random, orthogonality being absent.",
    "The start of oelm-random-unit, but Q and K train: control for the row norm without freezing.",
)
_register(
    "oelm-random-orthogonal",
    {"init": "headwise_random"},
    "Each head's Q and K rows from QR of a Gaussian, frozen: control for the kept row space, orthogonality being equal.",
    "The start of oelm-random-orthogonal, but Q and K train: control for the row space without freezing.",
)
_register(
    "oelm-global",
    {"init": "global"},
    "QR of the whole Q and K matrices, frozen: control for heads that are also orthogonal to each other.",
    "The start of oelm-global, but Q and K train: control for global orthogonality without freezing.",
)
_register(
    "oelm-scale-matched",
    {"init": "headwise", "scale": "pretrained"},
    "oelm-freeze with rows scaled to the checkpoint's norm, frozen: control for the scale of the attention logits.",
    "The start of oelm-scale-matched, but Q and K train: control for direction alone, without freezing.",
)
