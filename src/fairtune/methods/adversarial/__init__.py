"""Adversarial training: the model also learns from token vectors that are moved to where its loss is higher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from fairtune.methods.base import Method, Step
from fairtune.methods.config import MethodConfig, MethodUse
from fairtune.methods.registry import register
from fairtune.settings.values import Number, Whole

if TYPE_CHECKING:
    from torch import Tensor

Length = Annotated[Number, Field(ge=0, le=1e6)]
Passes = Annotated[Whole, Field(ge=1, le=1000)]
Norm = Literal["l2", "linf"]
Target = Literal["output", "table"]

WITHOUT_WEIGHTS = 2 / 3
"""What a pass without gradients of the weights costs: forward, and one of the two halves of backward."""


class AdversarialConfig(MethodConfig):
    """What all have in common."""

    epsilon: Length = Field(1.0, description="The longest that a perturbation can be; 0 trains without any.")
    norm: Norm = Field(
        "l2",
        description="What is measured: l2, the Euclidean length over all real tokens of an example; linf, the largest entry, so "
        "that every entry moves by the same, by the sign of its gradient.",
    )
    clean: bool = Field(
        True,
        description="Whether the loss of the examples as they are is learned from as well; false keeps the other alone.",
    )

    @property
    def idle(self) -> bool:
        """Nothing is perturbed."""
        return self.epsilon == 0

    def control_for(self, acting: MethodConfig) -> bool:
        """Without a perturbation no other setting makes a difference."""
        return self.idle and type(acting) is type(self) and not acting.idle


class AscentConfig(AdversarialConfig):
    """A perturbation that is found first, by steps up the loss, and then learned from."""

    target: Target = Field(
        "output",
        description="What is perturbed: output, the vectors that the token embeddings give, for each example by itself; table, the "
        "weights of the token embeddings, for the whole batch at once, as in the published title classifiers (a fault, kept for "
        "comparison).",
    )

    @property
    def ascent(self) -> tuple[int, float]:
        """Steps up the loss, and how long each is: one, as far as it may go."""
        return 1, self.epsilon

    @property
    def step_factor(self) -> float:
        if self.idle:
            return 1.0
        steps = self.ascent[0]
        passes = 2.0 if self.clean else 1.0
        alone = steps - 1 if self.clean else steps  # the clean pass gives the first gradient on its way
        return passes + alone * WITHOUT_WEIGHTS

    def clash(self, before: Sequence[MethodUse], after: Sequence[MethodUse]) -> str | None:
        for other in (*before, *after):
            if self.target == "table" and not self.idle and "embeddings" in other.config.freezes:
                return (
                    f"`target: table` moves the weights of the token embeddings along their gradient, but '{other.name}' freezes "
                    "them; use `target: output`"
                )
        return None


class FGMConfig(AscentConfig):
    """Learn also from each example's token vectors moved one step, of length epsilon, up the loss (FGM)."""


class PGDConfig(AscentConfig):
    """Learn also from each example's token vectors moved several steps up the loss, no further than epsilon (PGD)."""

    steps: Passes = Field(3, description="Steps up the loss.")
    step_size: Length = Field(0.3, description="How far each step goes; 0 trains without any perturbation.")

    @property
    def idle(self) -> bool:
        return super().idle or self.step_size == 0

    @property
    def ascent(self) -> tuple[int, float]:
        return self.steps, self.step_size


class FreeLBConfig(AdversarialConfig):
    """Learn from several passes over each batch, as its token vectors move from a random place up the loss (FreeLB)."""

    steps: Passes = Field(3, description="Passes over a batch; the gradients are the mean of theirs.")
    step_size: Length = Field(0.1, description="How far the token vectors move from one pass to the next.")
    epsilon: Length = Field(
        0.6,
        description="The furthest that they can be from where they are unperturbed; 0 trains without any perturbation.",
    )
    clean: bool = Field(False, description="Whether a pass over the examples as they are is added to these.")

    @property
    def step_factor(self) -> float:
        return 1.0 if self.idle else float(self.steps + self.clean)


class Ascent(Method):
    excludes = frozenset({"perturbation of the embeddings"})
    config: AscentConfig

    def __init__(self, config: AscentConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        if config.target == "table" and not config.idle:  # moved once for all examples of a batch
            self.needs = frozenset({"whole_batch"})

    def around_backward(self, step: Step, proceed: Callable[[], Tensor]) -> Tensor:
        from fairtune.methods.adversarial.perturbation import learn_after_ascent

        return proceed() if self.config.idle else learn_after_ascent(self.config, step, proceed)


@register
class FGM(Ascent):
    name, config_class = "fgm", FGMConfig


@register
class PGD(Ascent):
    name, config_class = "pgd", PGDConfig
    toy: ClassVar = {"steps": 2}


@register
class FreeLB(Method):
    name, config_class = "freelb", FreeLBConfig
    excludes = frozenset({"perturbation of the embeddings"})
    toy: ClassVar = {"steps": 2}
    config: FreeLBConfig

    def around_backward(self, step: Step, proceed: Callable[[], Tensor]) -> Tensor:
        from fairtune.methods.adversarial.perturbation import learn_while_moving

        return proceed() if self.config.idle else learn_while_moving(self.config, step, proceed)
