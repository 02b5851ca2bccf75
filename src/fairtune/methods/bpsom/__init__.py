"""BP-SOM: back-propagation with a class-labelled self-organising map on a hidden layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from fairtune.core.errors import DataError, ModelError, RunFailure
from fairtune.methods.arms import register_arm
from fairtune.methods.base import Method, Moment, ParamGroup, Step
from fairtune.methods.config import MethodConfig, MethodUse
from fairtune.methods.registry import register
from fairtune.settings.values import MOST_STEPS, Number, Whole
from fairtune.som.schedules import radius_at, rate_at

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fairtune.methods.bpsom.head import BPSOMHead
    from fairtune.models.declarations import Declared

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
    def _possible(self) -> BPSOMConfig:
        for name in ("som_lr", "radius"):
            high, low = getattr(self, name)
            if high < low:
                raise ValueError(
                    f"{name} is [{high}, {low}], but it falls from the first to the last; give the larger one first"
                )
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

    def control_for(self, acting: MethodConfig) -> bool:
        """An observer has the same head; what its map is like makes no difference to training."""
        return self.idle and isinstance(acting, BPSOMConfig) and not acting.idle and acting.hidden == self.hidden

    def clash(self, before: Sequence[MethodUse], after: Sequence[MethodUse]) -> str | None:  # noqa: ARG002
        if any(use.name == "peft" for use in before):
            return "it stands after 'peft', whose wrapped model has a head that cannot be replaced; list it before that"
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


@register
class BPSOM(Method):
    name, config_class = "bpsom", BPSOMConfig
    needs = frozenset({"whole_batch"})  # the map learns from all of a batch before it pulls any example of it
    excludes = frozenset({"classification head"})
    kinds = ("classify",)
    toy: ClassVar = {"hidden": 16, "grid": 4, "reliability": 0.5, "relabel": 10, "prune": 5e-4}
    config: BPSOMConfig
    head: BPSOMHead

    def __init__(self, config: BPSOMConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self.units = list(range(config.hidden))
        """Of the hidden layer as it was drawn, those that are not pruned."""
        self.passes = 0
        self._replaced: tuple[str, ...] = ()

    def prepare(self, model: nn.Module) -> nn.Module:
        from transformers import PreTrainedModel

        from fairtune.methods.bpsom.model import BPSOMForSequenceClassification
        from fairtune.models.model_parts import head_modules

        if not isinstance(model, PreTrainedModel):
            raise ModelError(
                f"bpsom: a method before it made the model a {type(model).__name__}, whose head it cannot replace; list bpsom "
                "before it (before peft)."
            )
        self._replaced = (*head_modules(model), f"{model.base_model_prefix}.pooler")
        of_head = ("hidden", "grid", "alpha", "reliability", "topology", "update")
        settings = {name: getattr(self.config, name) for name in of_head}
        return BPSOMForSequenceClassification.of(model, seed=self.seed, **settings)

    def changes(self, model: nn.Module) -> Sequence[Declared]:  # noqa: ARG002
        """The head that it stands in for, and a pooler."""
        from fairtune.models.declarations import Declared

        return [Declared(name) for name in self._replaced]

    def param_groups(self, groups: Sequence[ParamGroup], model: nn.Module) -> Sequence[ParamGroup]:
        from fairtune.methods.bpsom.model import active_head

        self.head = active_head(model)  # now that all methods have prepared the model
        return groups

    def around_backward(self, step: Step, proceed: Callable[[], Tensor]) -> Tensor:
        left = 1 - (step.step / step.total_steps if self.config.schedule == "step" else (step.epoch + 1) / step.epochs)
        self.head.radius, self.head.rate = radius_at(left, self.config.radius), rate_at(left, self.config.som_lr)
        self.head.loss_scale = step.scale
        self.head.watch()
        with _failing_at(step.step + 1):
            return proceed()

    def after_step(self, moment: Moment) -> None:
        if moment.step == moment.total_steps and not self.passes and self.config.alpha:
            moment.warn(
                f"bpsom: training ended at step {moment.step} before the first labelling pass, so the map had no labels and never "
                "pulled; train for more than one epoch, or set `relabel` to a number of steps."
            )
        if self.config.relabel != "epoch" and moment.step % self.config.relabel == 0:
            self._relabel(moment)

    def after_epoch(self, moment: Moment) -> None:
        if self.config.relabel == "epoch":
            self._relabel(moment)

    def _relabel(self, moment: Moment) -> None:
        from fairtune.methods.bpsom.cell_labels import relabel

        with _failing_at(moment.step):
            self.units = relabel(moment, self.head, self.units, self.config)
        self.passes += 1

    def plain(self, model: nn.Module) -> nn.Module:
        """transformers' own class where its head can be this one; else this model, which saves and loads itself."""
        from fairtune.methods.bpsom.model import BPSOMForSequenceClassification
        from fairtune.methods.bpsom.tanh_head import folded

        if not isinstance(model, BPSOMForSequenceClassification):
            return model  # adapters that cannot be merged
        return folded(model) or model

    def state_dict(self) -> dict[str, Any]:
        return {"units": self.units, "passes": self.passes}

    def load_state_dict(self, state: Mapping[str, Any], model: nn.Module) -> None:
        from fairtune.methods.bpsom.model import active_head
        from fairtune.methods.bpsom.pruning import resize

        self.units, self.passes = [int(unit) for unit in state["units"]], int(state["passes"])
        resize(active_head(model), len(self.units))


@contextmanager
def _failing_at(step: int) -> Iterator[None]:
    """What a map refuses fails the run, with the step at which it was."""
    try:
        yield
    except DataError as error:
        raise RunFailure(f"bpsom, at step {step}: {error}") from None


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
