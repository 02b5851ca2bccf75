"""BP-SOM: back-propagation with a class-labelled self-organising map on a hidden layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fairtune.methods.arms import register_arm, register_family
from fairtune.methods.config import MethodConfig, MethodUse
from fairtune.methods.registry import register
from fairtune.settings.values import MOST_STEPS, Number, Whole

MOST_UNITS, MOST_CELLS, LARGEST_MAP = 10_000, 1000, 100_000_000
"""Of the hidden layer; of a side of the map; of the map's weights, units x cells."""
Cells = Annotated[Whole, Field(ge=1, le=MOST_CELLS)]
Steps = Annotated[Whole, Field(ge=0, le=MOST_CELLS)]
Rate = Annotated[Number, Field(gt=0, le=1)]


class BPSOMConfig(MethodConfig):
    """Let a self-organising map on a sigmoid layer pull the activations of a class together and find units to prune (BP-SOM)."""

    hidden: Whole = Field(128, ge=1, le=MOST_UNITS, description="Sigmoid units between the encoder and the classes.")
    grid: Cells | tuple[Cells, Cells] = Field(
        20, description="Cells per side of the map, or [columns, rows]; not more cells than training examples."
    )
    alpha: Number = Field(
        0.25,
        ge=0,
        le=1,
        description="Weight of the map's error against that of back-propagation; 0 lets the map only watch.",
    )
    som_lr: tuple[Rate, Rate] = Field(
        (0.2, 0.05), description="How far the winning cell moves towards an example: [at first, at last]."
    )
    radius: tuple[Steps, Steps] = Field(
        (2, 0), description="Cells around the winner that move with it: [at first, at last]."
    )
    reliability: Number = Field(
        0.95, ge=0, le=1, description="Share of its label's class that a cell must have to be used as a target."
    )
    prune: Annotated[Number, Field(ge=0, le=1e6)] | None = Field(
        0.02,
        description="Units whose activation has no larger standard deviation over the training examples are removed; null removes "
        "none.",
    )
    update: Literal["batch", "sequential"] = Field(
        "batch",
        description="How the map learns: batch, in one go; sequential, example by example as the classic program.",
    )
    relabel: Literal["epoch"] | Annotated[Whole, Field(ge=1, le=MOST_STEPS)] = Field(
        "epoch",
        description="When cells get their labels and units are pruned: after each epoch, or every so many steps.",
    )
    topology: Literal["rectangular", "hexagonal"] = Field(
        "rectangular", description="Cells have eight neighbours, or six."
    )
    schedule: Literal["epoch", "step"] = Field(
        "epoch", description="Lower som_lr and radius with each epoch, as published, or with each step."
    )

    @model_validator(mode="after")
    def _falling(self) -> BPSOMConfig:
        for name in ("som_lr", "radius"):
            high, low = getattr(self, name)
            if high < low:
                raise ValueError(
                    f"{name} is [{high}, {low}], but it falls from the first to the last; give the larger one first"
                )
        return self

    @model_validator(mode="after")
    def _of_a_size(self) -> BPSOMConfig:
        if self.hidden * self.cells > LARGEST_MAP:
            raise ValueError(
                f"hidden is {self.hidden:,} and grid {self.cells:,} cells, a map of {self.hidden * self.cells:,} weights; allowed: "
                f"at most {LARGEST_MAP:,}"
            )
        return self

    @property
    def cells(self) -> int:
        columns, rows = (self.grid, self.grid) if isinstance(self.grid, int) else self.grid
        return columns * rows

    @property
    def idle(self) -> bool:
        """The map only watches."""
        return self.alpha == 0 and self.prune is None

    @property
    def whole_weights(self) -> str | None:
        return "its map learns from the head's activations as it trains, and pruning changes the head's shape"

    def control_for(self, acting: MethodConfig) -> bool:
        """An observer has the same head; what its map is like makes no difference to training."""
        return self.idle and isinstance(acting, BPSOMConfig) and not acting.idle and acting.hidden == self.hidden

    def clash(self, before: Sequence[MethodUse], after: Sequence[MethodUse]) -> str | None:  # noqa: ARG002
        if wrapping := next((use.name for use in before if use.config.wraps_model), None):
            return f"it stands after '{wrapping}', whose wrapped model has a head that cannot be replaced; list it before that"
        return None

    def data_problem(self, examples: int, labels: Sequence[str]) -> str | None:
        if len(labels) < 2:
            return f"its map tells classes apart, but the task has {len(labels)}."
        if self.cells > examples:
            return (
                f"its map has {self.cells} cells, more than the {examples} training examples; give a smaller `grid` "
                f"(at most {int(examples**0.5)}) or more examples."
            )
        return None


register(
    "bpsom",
    BPSOMConfig,
    "fairtune.methods.bpsom.method:BPSOM",
    claims=["classification head"],
    kinds=("classify",),
    toy={"hidden": 16, "grid": 4, "reliability": 0.5, "relabel": 10, "prune": 5e-4},
)


register_family("bpsom")
register_arm(
    "bpsom",
    "BP-SOM as published: a map on a sigmoid layer pulls activations of a class together, and prunes; the method on trial.",
    ["bpsom"],
)
register_arm(
    "bpsom-observer",
    "The same head from the same start with a map that only watches: control for the head, without pull and pruning.",
    [{"bpsom": {"alpha": 0, "prune": None}}],
)
register_arm(
    "bpsom-no-prune",
    "BP-SOM that keeps every unit: control for pruning.",
    [{"bpsom": {"prune": None}}],
)
