"""The training loop of one run.

`advance` does one unit of work: an optimizer step, an evaluation, or the final scoring. Between units the whole state of the run is
plain data, so a run can be saved, killed and resumed, or interleaved with others, without changing a bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from accelerate import Accelerator
from torch import Tensor, nn

from fairtune.core.seeding import RandomState, derive, random_state, restore_random_state, seed_all
from fairtune.ledger.events import EventLog
from fairtune.ledger.records import EVENT as RECORD
from fairtune.methods.base import Batch, Method, Moment
from fairtune.settings.metrics import METRICS
from fairtune.settings.sections import Train
from fairtune.tasks.tokens.encoded_splits import Indices
from fairtune.training.checkpoints import RunStates
from fairtune.training.device import apply_arithmetic
from fairtune.training.memory import count_states
from fairtune.training.objectives import Evaluation, Objective
from fairtune.training.optimizer import apply_gradients, make_optimizer, parameter_groups, set_learning_rate
from fairtune.training.progress import DONE, EVALUATE, SCORE, TRAIN, Clock, Progress
from fairtune.training.step import accumulate_gradients, make_batches


class TrainingRun:
    """One arm, one seed.

    Args:
        model: prepared by the arm's methods.
        objective: what is learned, and how it is scored.
        states: where the state of the run is saved; a state found there is resumed.
        keep: takes the name, the step and the arrays of what a method records.
        check_stop: called at every safe point; raises `Stopped` if the run should stop.

    Attributes:
        consistent: whether the state may be saved; False inside a training step and once the best weights are loaded.
        random: the state of all generators as this run left them.
        uncut: why batches must go through the model in one piece when memory runs out; None lets them be halved.
    """

    def __init__(
        self,
        *,
        model: nn.Module,
        methods: Sequence[Method],
        objective: Objective,
        train: Train,
        seed: int,
        accelerator: Accelerator,
        log: EventLog,
        states: RunStates,
        keep: Callable[[str, int, Mapping[str, Any]], None],
        check_stop: Callable[[], None],
    ) -> None:
        self.train, self.objective, self.methods, self.seed = train, objective, methods, seed
        self.accelerator, self.log, self.states, self.keep = accelerator, log, states, keep
        self.check_stop, self.device = check_stop, accelerator.device
        self.total_steps = train.total_steps(len(objective))
        self.steps_per_epoch = train.steps_per_epoch(len(objective))
        self.progress, self.clock = Progress(), Clock(self.device)
        self.scores: dict[str, Evaluation] = {}
        whole = [method.name for method in methods if "whole_batch" in method.needs]
        self.uncut = f"{' and '.join(whole)} must see the whole batch" if whole else None
        self.model = model.to(self.device)
        apply_arithmetic(self.model, train, self.device)
        self.consistent = True
        self.random: RandomState
        self._order: tuple[int, list[Indices]] | None = None
        if not states.resume(self):
            self.make_optimizer()
            seed_all(derive(seed, "training"))
            self.random = random_state()
        self.model.train()
        for method in methods:
            method.begin(objective.training_data)
        objective.begin(methods)

    @property
    def done(self) -> bool:
        return self.progress.phase == DONE

    def advance(self) -> None:
        """Do the next unit of work, then save the state if it is time to."""
        self.check_stop()
        restore_random_state(self.random)  # another run may have drawn since
        cut = self.progress.micro_batch
        if self.progress.phase == TRAIN:
            self.consistent = False
            self._train_step()
            self.consistent = True
        elif self.progress.phase == EVALUATE:
            self._evaluate()
        elif self.progress.phase == SCORE:
            self._score()
        self.progress.unit += 1
        self.random = random_state()
        if not self.done and (self.states.are_due(self.progress) or self.progress.micro_batch != cut):
            self.save()

    def save(self) -> None:
        """Write the whole state of the run, so that it can go on from here."""
        with self.clock.measure("checkpoint"):
            self.states.save(self)
        self.log.write("checkpoint", self.progress.unit, step=self.progress.step, seconds=self.clock.last["checkpoint"])

    # -- one optimizer step --------------------------------------------------------------------------------------------

    def _train_step(self) -> None:
        now, largest = self.progress, self.progress.largest_batch
        with self.clock.measure("data"):
            chosen = self._next_rows()
            batches = make_batches(self, chosen)
        with self.clock.measure("step"):
            rate = set_learning_rate(self.optimizer, self.train, now.step, self.total_steps)
            loss = accumulate_gradients(self, chosen, batches)
            with self.clock.part("optimizer"):
                where = f"at step {now.step + 1} of {self.total_steps}"
                norm = apply_gradients(self.optimizer, self._trainable, self.accelerator, loss, self.train.clip, where)
        if now.step == 0 or now.largest_batch != largest:
            count_states(self)
        now.skipped_steps += not math.isfinite(norm)  # accelerate does not see a fused optimizer skip
        now.step += 1
        now.step_in_epoch += 1
        sizes, examples = [self.objective.sizes(rows) for rows in chosen], sum(map(len, chosen))
        real, padded = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
        now.tokens, now.padding, now.examples = now.tokens + real, now.padding + padded, now.examples + examples
        self.log.write(
            "step", now.unit, step=now.step, epoch=now.epoch, loss=loss, lr=rate, grad_norm=norm,
            seconds=self.clock.last["step"], data_seconds=self.clock.last["data"],
            examples=examples, tokens=real, padding=padded,
        )  # fmt: skip
        self._call_methods("after_step")
        epoch_ends = now.step_in_epoch == self.steps_per_epoch
        if epoch_ends:
            now.epoch_seconds.append(self.clock.seconds["step"] + self.clock.seconds["data"] - sum(now.epoch_seconds))
            now.epoch, now.step_in_epoch = now.epoch + 1, 0
            self._call_methods("after_epoch")
            self.log.write("epoch", now.unit, epoch=now.epoch, step=now.step, seconds=now.epoch_seconds[-1])
        due = epoch_ends if self.train.evaluate == "epoch" else now.step % self.train.evaluate == 0
        if now.step == self.total_steps or (due and "validation" in self.objective.splits):
            now.phase = EVALUATE

    def _next_rows(self) -> list[Indices]:
        """The batches of the next optimizer step."""
        epoch, k = self.progress.epoch, self.train.accumulate
        if self._order is None or self._order[0] != epoch:
            self._order = epoch, self.objective.order(self.train.batch_size, derive(self.seed, "order"), epoch)
        start = self.progress.step_in_epoch * k
        return self._order[1][start : start + k]

    def make_optimizer(self) -> None:
        """The optimizer over what is trainable now."""
        groups = parameter_groups(self.model, self.train, self.methods)
        self._trainable = [p for group in groups for p in group["params"]]
        optimizer = make_optimizer(groups, self.train, self.device)
        self.model, self.optimizer = self.accelerator.prepare(self.model, optimizer)

    # -- evaluation ----------------------------------------------------------------------------------------------------

    def _evaluate(self) -> None:
        """Score the validation split; keep the weights if they are the best so far."""
        now = self.progress
        if "validation" not in self.objective.splits:
            now.best_step, now.phase = now.step, SCORE
            self.states.save_best(self, Evaluation({}, {}))
            return
        found = self._scored("validation")
        now.evaluations += 1
        score = found.metrics[self.objective.metric]
        lower = METRICS[self.objective.metric].lower_is_better
        better = now.best_score is None or (score < now.best_score if lower else score > now.best_score)
        if better:
            now.best_score, now.best_step, now.since_best = score, now.step, 0
            with self.clock.measure("checkpoint"):
                self.states.save_best(self, found)
        else:
            now.since_best += 1
        self._log_scores("validation", found, now.step, best=better)
        if self.train.patience is not None and now.since_best >= self.train.patience and now.step < self.total_steps:
            now.stopped_early = True
            self.log.write("early_stop", now.unit, step=now.step, best_step=now.best_step)
        now.phase = SCORE if now.stopped_early or now.step >= self.total_steps else TRAIN

    def _score(self) -> None:
        """Load the best weights and score the test split, if there is one: selected on one split, reported on another.

        Where the objective asks for it, the weights of the last step are scored too, under the name of `final`.
        """
        now, final = self.progress, self.objective.scores_final
        if final and now.best_step != now.step:
            self.scores["final"] = self._scored("test")
            self._log_scores("final", self.scores["final"], now.step)
        self.consistent = False  # a state saved from here on would have the best weights in place of the last
        self.scores["validation"] = self.states.restore_best(self)
        if "test" in self.objective.splits:
            self.scores["test"] = self._scored("test")
            self._log_scores("test", self.scores["test"], now.best_step)
        if final:
            self.scores.setdefault("final", self.scores["test"])
        now.phase, self.consistent = DONE, True

    def _scored(self, split: str) -> Evaluation:
        with self.clock.measure(split):
            return self.objective.evaluate(self.model, split, self.device, self.methods, self.check_stop)

    def _log_scores(self, name: str, found: Evaluation, step: int | None, **more: Any) -> None:
        seconds = self.clock.last["validation" if name == "validation" else "test"]
        self.log.write(
            "evaluation", self.progress.unit, split=name, step=step, epoch=self.progress.epoch, seconds=seconds,
            **more, **found.metrics,
        )  # fmt: skip

    # -- methods and messages --------------------------------------------------------------------------------------------

    def _call_methods(self, hook: str) -> None:
        if not self.methods:
            return
        now = self.progress
        moment = Moment(
            model=self.model, optimizer=self.optimizer, step=now.step, total_steps=self.total_steps, epoch=now.epoch,
            train_batches=self._train_pass, record=self._record, warn=self.warn,
            methods=self.methods,
        )  # fmt: skip
        with self.clock.measure("method" if hook == "after_step" else "epoch"):
            for method in self.methods:
                getattr(method, hook)(moment)

    def _train_pass(self) -> Iterator[Batch]:
        for batch in self.objective.passing(self.device):
            self.check_stop()
            yield batch

    def _record(self, name: str, arrays: Mapping[str, Tensor], **figures: Any) -> None:
        now = self.progress
        self.keep(name, now.step, {key: array.detach().cpu().numpy() for key, array in arrays.items()})
        self.log.write(RECORD, now.unit, name=name, step=now.step, epoch=now.epoch, **figures)

    def warn(self, text: str) -> None:
        """Record what readers of the results must know."""
        self.log.write("warning", self.progress.unit, text=text)
