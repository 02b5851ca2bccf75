"""BP-SOM in a run: the head, its map's course, the labelling passes, pruning, and what is recorded of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from fairtune.core.errors import DataError, ModelError, RunFailure
from fairtune.methods.base import Method, Moment, ParamGroup, Parts, Step
from fairtune.methods.bpsom import BPSOMConfig
from fairtune.methods.bpsom.head import BPSOMHead
from fairtune.methods.bpsom.model import BPSOMForSequenceClassification, active_head, classes_of
from fairtune.methods.bpsom.pruning import copies_of, prune, resize, units_to_keep
from fairtune.methods.bpsom.tanh_head import folded
from fairtune.models.declarations import Declared
from fairtune.models.model_parts import evaluating, head_modules
from fairtune.models.parameters import count_parameters
from fairtune.som.distances import ROWS_AT_ONCE
from fairtune.som.labels import Labelling
from fairtune.som.schedules import radius_at, rate_at


class BPSOM(Method):
    config: BPSOMConfig

    def __init__(self, config: BPSOMConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self._units, self._passes = list(range(config.hidden)), 0
        self._head: BPSOMHead | None = None
        self._replaced: tuple[str, ...] = ()
        self._learned: list[tuple[Step, Tensor]] = []

    def prepare(self, model: nn.Module) -> nn.Module:
        if not isinstance(model, PreTrainedModel):
            raise ModelError(
                f"bpsom: a method before it made the model a {type(model).__name__}, whose head it cannot replace; list bpsom "
                "before it (before peft)."
            )
        c = self.config
        self._replaced = (*head_modules(model), f"{model.base_model_prefix}.pooler")
        return BPSOMForSequenceClassification.of(
            model, hidden=c.hidden, grid=c.grid, alpha=c.alpha, reliability=c.reliability, topology=c.topology, update=c.update,
            seed=self.seed,
        )  # fmt: skip

    def changes(self, model: nn.Module) -> Sequence[Declared]:  # noqa: ARG002
        """The head that it stands in for, and a pooler."""
        return [Declared(name) for name in self._replaced]

    def param_groups(self, groups: Sequence[ParamGroup], model: nn.Module) -> Sequence[ParamGroup]:
        self._head = active_head(model)  # now that all methods have prepared the model
        return groups

    def before_parts(self, parts: Parts) -> None:
        """The map learns from the whole batch before it pulls any example of it, so all parts are looked at first."""
        self._learned = []
        head = self._head or active_head(parts.steps[0].model)
        with head.rehearsing() as seen:
            parts.rehearse()
        with _failing_at(parts.steps[0].step + 1):
            cells = head.teach(parts.join([h for h, _ in seen]), parts.join([labels for _, labels in seen]))
        self._learned = list(zip(parts.steps, parts.divide(cells), strict=True))

    def around_backward(self, step: Step, proceed: Callable[[], Tensor]) -> Tensor:
        head = self._head or active_head(step.model)
        left = 1 - (step.step / step.total_steps if self.config.schedule == "step" else (step.epoch + 1) / step.epochs)
        head.radius, head.rate = radius_at(left, self.config.radius), rate_at(left, self.config.som_lr)
        head.loss_scale = step.scale
        learned = next((cells for part, cells in self._learned if part is step), None)
        if learned is None:
            head.watch()
        else:
            head.pull_towards(learned)
        with _failing_at(step.step + 1):
            return proceed()

    def after_step(self, moment: Moment) -> None:
        if moment.step == moment.total_steps and not self._passes and self.config.alpha:
            moment.warn(
                f"bpsom: training ended at step {moment.step} before the first labelling pass, so the map had no labels and never "
                "pulled; train for more than one epoch, or set `relabel` to a number of steps."
            )
        if self.config.relabel != "epoch" and moment.step % self.config.relabel == 0:
            self._relabel(moment)

    def after_epoch(self, moment: Moment) -> None:
        if self.config.relabel == "epoch":
            self._relabel(moment)

    def plain(self, model: nn.Module) -> nn.Module:
        """transformers' own class where its head can be this one; else this model, which saves and loads itself."""
        if not isinstance(model, BPSOMForSequenceClassification):
            return model  # adapters that cannot be merged
        return folded(model) or model

    def state_dict(self) -> dict[str, Any]:
        return {"units": self._units, "passes": self._passes}

    def load_state_dict(self, state: Mapping[str, Any], model: nn.Module) -> None:
        self._units, self._passes = [int(unit) for unit in state["units"]], int(state["passes"])
        resize(active_head(model), len(self._units))

    def _relabel(self, moment: Moment) -> None:
        """A labelling pass, the pruning that it asks for, and their record."""
        head, start = self._head or active_head(moment.model), time.perf_counter()
        som = head.som
        assert som is not None, "the method always has a map"
        with _failing_at(moment.step):
            labelling = _labelling_pass(moment, head)
        self._passes += 1
        keep, std = self._kept(labelling, moment), labelling.std
        units = torch.tensor(self._units)
        arrays = {
            "prototypes": som.prototypes.float(), "labels": som.labels, "reliability": som.reliability.float(),
            "counts": som.counts, "u_matrix": som.u_matrix().float(), "units": units, "mean": labelling.mean.float(),
            "std": std.float(), "histogram": labelling.histogram, "removed": units[~keep.cpu()],
        }  # fmt: skip
        arrays = {name: array.clone() for name, array in arrays.items()}
        figures = {
            "mean_reliability": labelling.mean_reliability,
            "labelled": float((som.labels >= 0).double().mean()),
            "quantisation_error": labelling.quantisation_error,
            "topographic_error": labelling.topographic_error,
            "examples": labelling.examples,
            "seconds": time.perf_counter() - start,
        }
        if not bool(keep.all()):
            prune(head, keep, labelling.mean, moment.optimizer, copies_of(head, moment.model, moment.copies))
            self._units = units[keep.cpu()].tolist()
        moment.record(
            "bpsom", arrays, columns=som.grid.columns, rows=som.grid.rows, topology=som.grid.topology,
            classes=classes_of(moment.model), use=head.take_use(), units=len(self._units), units_at_start=self.config.hidden,
            parameters=count_parameters(moment.model).total, head_parameters=sum(p.numel() for p in head.parameters()),
            radius=head.radius, rate=head.rate, alpha=head.alpha, threshold=head.reliability,
            prune=self.config.prune, **figures,
        )  # fmt: skip

    def _kept(self, labelling: Labelling, moment: Moment) -> Tensor:
        std, threshold = labelling.std, self.config.prune
        if threshold is None:
            return torch.ones_like(std, dtype=torch.bool)
        keep = units_to_keep(std, threshold)
        if not bool((std > threshold).any()) and len(std) > 1:
            moment.warn(
                f"bpsom: at step {moment.step} every one of the {len(std)} hidden units varied by no more than prune "
                f"({threshold:g}); the one that varies most, by {float(std.max()):.2g}, was kept, or the head would have none."
            )
        return keep


def _labelling_pass(moment: Moment, head: BPSOMHead) -> Labelling:
    """Every training example once through the model as it is evaluated, its activations onto the map."""
    assert head.som is not None, "the method always has a map"
    labelling = head.som.labelling()
    seen: list[Tensor] = []
    classes: list[Tensor] = []
    hook = head.out.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))

    def look() -> None:
        labelling.add(torch.cat(seen), torch.cat(classes))
        seen.clear()
        classes.clear()

    try:
        with evaluating(moment.model), torch.inference_mode():
            for batch in moment.train_batches():
                moment.model(**{name: value for name, value in batch.items() if name != "labels"})
                classes.append(batch["labels"])
                if sum(map(len, classes)) >= ROWS_AT_ONCE:  # the map looks at many in the time of few
                    look()
            if classes:
                look()
    finally:
        hook.remove()
    return labelling.finish()


@contextmanager
def _failing_at(step: int) -> Iterator[None]:
    """What a map refuses fails the run, with the step at which it was."""
    try:
        yield
    except DataError as error:
        raise RunFailure(f"bpsom, at step {step}: {error}") from None
