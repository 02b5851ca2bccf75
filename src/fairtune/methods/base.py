"""What a method is: hooks into training, each with a default that changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from fairtune.methods.config import MethodConfig

if TYPE_CHECKING:  # a plug-in's single file has config and method, and is imported where no torch is needed
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from fairtune.models.declarations import Declared
    from fairtune.tasks.task import Texts

Batch = Mapping[str, "Tensor"]
ParamGroup = dict[str, Any]
KINDS = ("classify", "language_model")
"""Of tasks."""


@dataclass(frozen=True)
class TrainingData:
    """What a run trains on, as far as methods may know it.

    Args:
        labels: names of the classes, in the order of their numbers; none of a language model.
        counts: training examples of each.
    """

    labels: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()


class Step(Protocol):
    """One batch on its way through the model, as `around_backward` sees it."""

    @property
    def model(self) -> nn.Module: ...

    @property
    def batch(self) -> Batch:
        """As the methods' `inputs` made it."""

    @property
    def scale(self) -> float:
        """What a loss is multiplied by on its way back: the batch's share of the step, and the precision's loss scale."""

    @property
    def step(self) -> int:
        """Optimizer steps that are done."""

    @property
    def total_steps(self) -> int: ...

    @property
    def epoch(self) -> int:
        """The pass over the training examples that is under way, from 0."""

    @property
    def epochs(self) -> int:
        """The last may be cut short."""

    def forward(self) -> Tensor:
        """The batch's loss, by the arm's loss, under the run's precision."""

    def backward(self, loss: Tensor) -> None:
        """Add the loss's gradients, scaled as the run's precision and accumulation ask."""


@dataclass(frozen=True)
class Moment:
    """Where training stands when `after_step` or `after_epoch` is called.

    Args:
        epoch: passes over the training examples that are complete.
        train_batches: every training example once with its label, on the device, for a pass without learning; the same
            batches every time, cut as quickly as they can be evaluated.
        record: called with a name, arrays (kept in a file of their own) and figures as keywords (kept in the run's events).
        warn: tell the user something that readers of the results must know.
        methods: of the arm. A method that changes a parameter's shape also changes, in place, what their states hold of it:
            the tensors whose names in `state_dict` end with the parameter's.
    """

    model: nn.Module
    optimizer: Optimizer
    step: int
    total_steps: int
    epoch: int
    train_batches: Callable[[], Iterator[Batch]]
    record: Callable[..., None]
    warn: Callable[[str], None]
    methods: Sequence[Method] = ()


class Method:
    """A change to how a model is trained. Subclasses override what they change.

    Args:
        seed: for whatever the method draws, a whole number of up to 56 bits (numpy's older generators need `seed % 2**32`);
            the run's seed and the method's place in the arm decide it.

    Attributes:
        name: as studies write it.
        config_class: its settings; their docstring is the method's help.
        needs: `whole_batch`, where the gradients of two halves of a batch do not add up to those of the whole, or where a
            forward pass changes a buffer. If memory runs out, such an arm fails; batches of other arms are halved.
        excludes: what it takes for itself, such as the `loss`; two methods of one arm may not name the same.
        kinds: of task that it is for; a study of another kind is refused when it is read.
        toy: settings with which `fairtune.testing` tries it, where its own do not fit 200 short texts in two classes.
    """

    name: ClassVar[str]
    config_class: ClassVar[type[MethodConfig]]
    needs: frozenset[str] = frozenset()
    excludes: ClassVar[frozenset[str]] = frozenset()
    kinds: ClassVar[tuple[str, ...]] = KINDS
    toy: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def help(cls) -> str:
        return (cls.config_class.__doc__ or "").strip()

    def __init__(self, config: MethodConfig, seed: int = 0) -> None:
        self.config = config
        self.seed = seed

    def prepare(self, model: nn.Module) -> nn.Module:
        """Change the model before the optimizer exists: re-initialise, freeze, add a head. Returns the model to train."""
        return model

    def changes(self, model: nn.Module) -> Sequence[Declared]:  # noqa: ARG002
        """The checkpoint's tensors that `prepare` may have changed or taken away, of the model that it returned.

        A run whose start differs from the checkpoint in any other tensor fails. New tensors, and freezing, need no word.
        """
        return ()

    def param_groups(self, groups: Sequence[ParamGroup], model: nn.Module) -> Sequence[ParamGroup]:  # noqa: ARG002
        """The optimizer's parameter groups, each with `params`, `lr` and `weight_decay`."""
        return groups

    def begin(self, data: TrainingData) -> None:
        """Called once before the first step, and when a run is taken up again."""

    def texts(self, texts: Sequence[Texts], epoch: int) -> Sequence[Texts]:  # noqa: ARG002
        """The training texts of an epoch, from 0, as they are to be tokenised; decided by them, the seed and the epoch alone."""
        return texts

    def inputs(self, batch: Batch) -> Batch:
        """A training batch as it goes through the model."""
        return batch

    def loss(self, outputs: Any, batch: Batch) -> Tensor | None:  # noqa: ARG002
        """The mean loss of a batch in place of the model's own; None keeps what there is."""
        return None

    def penalty(self, outputs: Any, batch: Batch) -> Tensor | None:  # noqa: ARG002
        """A mean over examples that is added to the batch's loss, whatever that is; None adds nothing."""
        return None

    def around_backward(self, step: Step, proceed: Callable[[], Tensor]) -> Tensor:  # noqa: ARG002
        """Forward and backward of one batch. `proceed` does it as without this method and returns the loss."""
        return proceed()

    def after_step(self, moment: Moment) -> None:
        """Called after each optimizer step."""

    def after_epoch(self, moment: Moment) -> None:
        """Called after each pass over the training examples, before its evaluation."""

    def evaluating(self, model: nn.Module) -> AbstractContextManager[None]:  # noqa: ARG002
        """Holds while the model is evaluated, and while the weights to keep are copied."""
        return nullcontext()

    def plain(self, model: nn.Module) -> nn.Module:
        """The trained model as plain transformers has it, for `save_pretrained`. Called last; the model is not trained on."""
        return model

    def state_dict(self) -> dict[str, Any]:
        """What must be saved to go on exactly: the tensors themselves, not copies, and anything JSON can hold."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any], model: nn.Module) -> None:
        """Take up a saved state, after `prepare` and before the model's own weights are loaded into it."""
