"""The training loop of one run, as a thing that can be stepped.

`advance` does one unit of work: an optimizer step, an evaluation, or the final scoring. Between units the whole state
of the run is plain data, so a run can be saved, killed and resumed, or interleaved with others, without changing a bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from fairtune.core.errors import RunFailure
from fairtune.core.out_of_memory import ScoredParts
from fairtune.core.seeding import (
    RandomState,
    derive,
    random_state,
    restore_random_state,
    seed_all,
)
from fairtune.ledger.events import EventLog
from fairtune.ledger.records import EVENT as RECORD
from fairtune.methods.base import Batch, Method, Moment, are_ours
from fairtune.models.attention_kernels import use_kernel
from fairtune.models.last_layer import narrow_last_layer
from fairtune.settings.metrics import METRICS
from fairtune.settings.sections import Train
from fairtune.settings.values import INTERVAL_UNITS
from fairtune.tasks.tokens.encoded_splits import Indices
from fairtune.training.checkpoints import RunStates
from fairtune.training.compiled_layers import bucket_lengths, compile_layers
from fairtune.training.fast_layers import use_fast_dropout, use_fast_gelu
from fairtune.training.layer_checkpoints import checkpoint_layers
from fairtune.training.memory import count_states
from fairtune.training.micro_batches import EVENT as MICRO_BATCH
from fairtune.training.micro_batches import MicroBatches
from fairtune.training.objectives import Evaluation, Objective
from fairtune.training.optimizer import (
    gradient_norm,
    make_optimizer,
    parameter_groups,
    set_learning_rate,
    step_clipped,
)
from fairtune.training.progress import DONE, EVALUATE, SCORE, TRAIN, Clock, Progress
from fairtune.training.ranks import ALONE, Ranks
from fairtune.training.shared_batches import SharedBatch
from fairtune.training.table_gradients import keep_gradient_memory, use_fast_embedding
from fairtune.training.weight_shards import DIVIDED, Division

NOT_CUT = 1 << 62
COMMON = "common"
"""Among the states of generators, the one that all processes of a run have in common."""


class TrainingRun:
    """One arm, one seed.

    Args:
        model: prepared by the arm's methods.
        objective: what is learned, and how it is scored.
        states: where the state of the run is saved; a state found there is taken up.
        keep: takes the name, the step and the arrays of what a method records.
        check_stop: called at every safe point; raises `Stopped` if the run shall stop.
        ranks: the processes that share the run; this is one of them.

    Attributes:
        consistent: whether the state may be saved; False only inside a training step.
        random: the state of all generators as this run left them.
        common: draws what must be the same in all processes of the run.
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
        checkpoint_every: int | str,
        check_stop: Callable[[], None],
        ranks: Ranks = ALONE,
    ) -> None:
        self.ranks, self.common = ranks, torch.Generator()
        self.train, self.objective, self.methods, self.seed = train, objective, methods, seed
        self.accelerator, self.log, self.states, self.keep = accelerator, log, states, keep
        self._own_check_stop = check_stop
        self.check_stop = check_stop if ranks.alone else partial(ranks.check_together, check_stop)
        self.device = accelerator.device
        self.checkpoint_every = checkpoint_every
        self.total_steps = train.total_steps(len(objective))
        self.steps_per_epoch = train.steps_per_epoch(len(objective))
        self.progress, self.clock = Progress(), Clock(self.device)
        lengths = bucket_lengths(train.longest) if train.compile else ()
        self.micro_batches, self._save_now = MicroBatches(self, self._tell_cut, lengths), False
        self.micro_batches.refusal = DIVIDED if ranks.shards else None
        self.scores: dict[str, Evaluation] = {}
        self.model = model if ranks.shards else model.to(self.device)
        use_kernel(self.model, train.attention_kernel, self.device)
        use_fast_gelu(self.model)
        narrow_last_layer(self.model)
        if train.gradient_checkpointing:
            checkpoint_layers(self.model)
        if self.device.type == "cpu":
            use_fast_dropout(self.model)
        self._division: Division | None = None
        if ranks.shards:  # a layer at a time, as the device may have no room for more
            self._division = Division(self.model, parameter_groups(self.model, train, methods), self.device, ranks)
        elif self.device.type == "cpu":
            use_fast_embedding(self.model, wary=not are_ours(methods))
        self.consistent = True
        self.random: RandomState
        self._saved_at = time.monotonic()
        self._order: tuple[int, list[Indices]] | None = None
        if not states.resume(self):
            self.make_optimizer()
            self.draw_anew()
        ranks.require_same(self.model)
        self.model.train()
        for method in methods:
            method.begin(objective.training_data)
        objective.begin(self.model, methods, accelerator)
        if train.compile:
            compile_layers(self.model, wary=not are_ours(methods))

    # -- the units of work ---------------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        return self.progress.phase == DONE

    def advance(self) -> None:
        """Do the next unit of work, then save the state if it is time to."""
        self.check_stop()
        restore_random_state(self.random)  # another run may have drawn since
        if COMMON in self.random[0]:
            self.common.set_state(self.random[0][COMMON])
        if self.progress.phase == TRAIN:
            self.consistent = False
            self._train_step()
            self.consistent = True
        elif self.progress.phase == EVALUATE:
            self._evaluate()
        elif self.progress.phase == SCORE:
            self._score()
        self.progress.unit += 1
        self.random = self._random_state()
        due = self._checkpoint_is_due()
        if not self.ranks.alone:
            due = self._agree(due)
        if not self.done and (due or self._save_now):
            self.save()

    def draw_anew(self) -> None:
        """Begin the run's randomness. Each process has its own, or all parts of a batch would have the same dropout."""
        others = ("rank", self.ranks.rank, self.progress.unit) if self.ranks.rank else ()
        seed_all(derive(self.seed, "training", *others))
        self.common.manual_seed(derive(self.seed, "training"))
        self.random = self._random_state()

    def _random_state(self) -> RandomState:
        tensors, values = random_state()
        return (tensors, values) if self.ranks.alone else ({**tensors, COMMON: self.common.get_state()}, values)

    def end_sharing(self) -> None:
        """Training is over: the first process goes on alone with what is made of the model, of which it now holds all."""
        if self._division is not None:
            self.model = self._division.undo(self.model, self.device)
            self.device = next(self.model.parameters()).device
        self.check_stop, self.ranks = self._own_check_stop, ALONE

    def go_on_training(self) -> None:
        """Leave out what comes between training steps, and begin again after the last one: for who times steps."""
        if self.progress.phase != TRAIN:
            now = self.progress
            if now.step >= self.total_steps:
                self.progress = Progress(
                    memory=now.memory, largest_batch=now.largest_batch, micro_batch=now.micro_batch
                )
            self.progress.phase = TRAIN

    def save(self) -> None:
        """Write the whole state of the run, so that it can go on from here."""
        with self.clock.measure("checkpoint"):
            self.states.save(self)
        self._saved_at, self._save_now = time.monotonic(), False
        self.log.write("checkpoint", self.progress.unit, step=self.progress.step, seconds=self.clock.last["checkpoint"])

    def _train_step(self) -> None:
        now = self.progress
        largest = now.largest_batch
        with self.clock.measure("data"):
            chosen = self._next_rows()
            shared = [] if self.ranks.alone else [self._share(rows) for rows in chosen]
            own = [one.own for one in shared] if shared else chosen
            batches = self.micro_batches.batches(own)
        with self.clock.measure("step"):
            rate = set_learning_rate(self.optimizer, self.train, now.step, self.total_steps)
            loss = self.ranks.total(self.micro_batches.forward_backward(own, batches, shared))
            with self.clock.part("optimizer"):
                self.ranks.sum_gradients(self._trainable)
                self.accelerator.unscale_gradients()
                norm = gradient_norm(self._trainable)
                self._require_finite(loss, norm)
                step_clipped(self.optimizer, self._trainable, norm, self.train.clip)
                keep_gradient_memory(self._trainable)
                self.optimizer.zero_grad(set_to_none=True)
        if now.step == 0 or largest < now.largest_batch:
            count_states(self)
        now.skipped_steps += not math.isfinite(float(norm))  # accelerate does not see a fused optimizer skip
        now.step += 1
        now.step_in_epoch += 1
        sizes, examples = [self.objective.sizes(rows) for rows in chosen], sum(map(len, chosen))
        real, padded = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
        now.tokens, now.padding, now.examples = now.tokens + real, now.padding + padded, now.examples + examples
        self.log.write(
            "step", now.unit, step=now.step, epoch=now.epoch, loss=loss, lr=rate, grad_norm=float(norm),
            seconds=self.clock.last["step"], data_seconds=self.clock.last["data"],
            examples=examples, tokens=real, padding=padded,
        )  # fmt: skip
        self._call_methods("after_step")
        epoch_ends = now.step_in_epoch == self.steps_per_epoch
        if epoch_ends:
            self._end_epoch()
        last = now.step == self.total_steps
        due = epoch_ends if self.train.evaluate == "epoch" else now.step % self.train.evaluate == 0
        if last or (due and self._selects):
            now.phase = EVALUATE

    def _share(self, rows: Indices) -> SharedBatch:
        return SharedBatch(rows, self.ranks, self.objective, self.common)

    def _require_finite(self, loss: float, norm: Tensor) -> None:
        step = self.progress.step + 1
        if not math.isfinite(loss):
            raise RunFailure(
                f"the loss is {loss} at step {step} of {self.total_steps}; a lower lr or a longer warm-up may help"
            )
        if not math.isfinite(float(norm)) and self.accelerator.scaler is None:
            raise RunFailure(
                f"the gradient's norm is {float(norm)} at step {step} of {self.total_steps}; a lower lr may help"
            )

    def _end_epoch(self) -> None:
        now = self.progress
        now.epoch_seconds.append(self.clock.seconds["step"] + self.clock.seconds["data"] - sum(now.epoch_seconds))
        now.epoch += 1
        now.step_in_epoch = 0
        self._call_methods("after_epoch")
        self.log.write("epoch", now.unit, epoch=now.epoch, step=now.step, seconds=now.epoch_seconds[-1])

    def _evaluate(self) -> None:
        """Score the validation split; keep the weights if they are the best so far."""
        now = self.progress
        if not self._selects:
            now.best_step, now.phase = now.step, SCORE
            self.states.save_best(self, Evaluation({}, {}))
            return
        with self.clock.measure("validation"):
            found = self._scores("validation")
        now.evaluations += 1
        score = found.metrics[self.objective.metric]
        better = now.best_score is None or self._is_better(score, now.best_score)
        if better:
            now.best_score, now.best_step, now.since_best = score, now.step, 0
            with self.clock.measure("checkpoint"):
                self.states.save_best(self, found)
        else:
            now.since_best += 1
        self.log.write(
            "evaluation", now.unit, split="validation", step=now.step, epoch=now.epoch, best=better,
            seconds=self.clock.last["validation"], **found.metrics,
        )  # fmt: skip
        if self.train.patience is not None and now.since_best >= self.train.patience and now.step < self.total_steps:
            now.stopped_early = True
            self.log.write("early_stop", now.unit, step=now.step, best_step=now.best_step)
        now.phase = SCORE if now.stopped_early or now.step >= self.total_steps else TRAIN

    def _score(self) -> None:
        """Load the best weights and score the test split, if there is one: selected on one split, reported on another.

        Where the objective asks for it, the weights of the last step are scored too, under the name of `final`.
        """
        now = self.progress
        if self.objective.scores_final and now.best_step != now.step:
            self._test("final", now.step)
        self.scores["validation"] = self.states.restore_best(self)
        if "test" in self.objective.splits:
            self._test("test", now.best_step)
        if self.objective.scores_final:
            self.scores.setdefault("final", self.scores["test"])
        now.phase = DONE

    def _test(self, name: str, step: int | None) -> None:
        with self.clock.measure("test"):
            self.scores[name] = self._scores("test")
        self.log.write(
            "evaluation", self.progress.unit, split=name, step=step, epoch=self.progress.epoch,
            seconds=self.clock.last["test"], **self.scores[name].metrics,
        )  # fmt: skip

    @property
    def _selects(self) -> bool:
        return "validation" in self.objective.splits

    def _scores(self, split: str) -> Evaluation:
        scored = ScoredParts(self.progress.scored_parts, self._tell_scored, cuts=not self.ranks.shards)
        return self.objective.evaluate(
            self.model, split, self.device, self.methods, self.check_stop, scored, self.ranks
        )

    def _is_better(self, score: float, than: float) -> bool:
        return score < than if METRICS[self.objective.metric].lower_is_better else score > than

    # -- what the units need -------------------------------------------------------------------------------------------

    def _next_rows(self) -> list[Indices]:
        """The batches of the next optimizer step."""
        epoch, k = self.progress.epoch, self.train.accumulate
        if self._order is None or self._order[0] != epoch:
            seed = derive(self.seed, "order")
            self._order = epoch, self.objective.order(self.train.batch_size, seed, epoch)
        start = self.progress.step_in_epoch * k
        return self._order[1][start : start + k]

    def make_optimizer(self) -> None:
        """The optimizer over what is trainable now."""
        divided = self._division
        groups = divided.groups(self.model) if divided else parameter_groups(self.model, self.train, self.methods)
        self._trainable = [p for group in groups for p in group["params"]]
        optimizer = make_optimizer(groups, self.train, self.device, fused=not self.ranks.shards)
        if self.ranks.alone:
            self.model, self.optimizer = self.accelerator.prepare(self.model, optimizer)
        else:  # its precision, without the wrapper that sums gradients: see `Ranks.sum_gradients`
            self.model = self.accelerator.prepare_model(self.model, evaluation_mode=True)
            self.optimizer = self.accelerator.prepare_optimizer(optimizer)

    def _call_methods(self, hook: str) -> None:
        if not self.methods:
            return
        now = self.progress
        moment = Moment(
            self.model,
            self.optimizer,
            now.step,
            self.total_steps,
            now.epoch,
            self._train_pass,
            self._record,
            self._warn,
            [copies for method in self.methods if (copies := method.copies())],
        )
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

    def _warn(self, text: str) -> None:
        self.log.write("warning", self.progress.unit, text=text)

    def _tell_cut(self, size: int, was: int) -> None:
        """Batches are cut from here on; kept as soon as the step is done, so that a run that is killed goes on so too."""
        now, self._save_now = self.progress, True
        self.log.write(MICRO_BATCH, now.unit, step=now.step + 1, size=size, was=was)
        self._warn(
            f"memory ran out at step {now.step + 1} with {was} examples at once; from there on at most {size} go through the model "
            "at once, and a step still learns from the same examples"
        )

    def _tell_scored(self, parts: int) -> None:
        self.progress.scored_parts, self._save_now = parts, True
        self._warn(
            f"memory ran out in an evaluation; from there on each batch that is scored is cut into {parts} parts"
        )

    def _checkpoint_is_due(self) -> bool:
        every = self.checkpoint_every
        if isinstance(every, int):
            return self.progress.phase == TRAIN and self.progress.step % every == 0
        unit = every.lstrip("0123456789.")
        return time.monotonic() - self._saved_at >= float(every.removesuffix(unit)) * INTERVAL_UNITS[unit]

    def _agree(self, due: bool) -> bool:
        """Have all processes save at the same time, and cut their batches alike from now on. Returns whether to save."""
        now, own = self.progress, (due and self.ranks.leads) or self._save_now  # clocks differ
        cut = -NOT_CUT if now.micro_batch is None else -now.micro_batch
        asked, cut, now.scored_parts = self.ranks.most([int(own), cut, now.scored_parts])
        now.micro_batch = None if cut == -NOT_CUT else -cut
        return bool(asked)
