"""A batch cut into parts that together have the gradient of the whole, with every method that allows it.

A step's loss is a mean over its examples, so a part counts by its examples. Where a loss is another mean, by the weights of classes
or over tokens, its parts are emphasised so that they make the same mean; where a method must have seen the whole batch before
any example learns, it can rehearse the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from fairtune.core.seeding import RandomState, random_state, restore_random_state
from fairtune.methods.base import Batch, Method, Rehearsed
from fairtune.tasks.tokens.encoded_splits import Indices
from fairtune.training.batch_pass import BatchPass
from fairtune.training.progress import RunInProgress
from fairtune.training.shared_batches import PlaceInBatch, SharedBatch

CONCERNED = ("inputs", "loss", "penalty", "around_backward")
"""Hooks that see a batch."""


def cut_rows(rows: Indices, most: int | None) -> list[Indices]:
    """The rows of a batch in as few parts as have at most so many, as even as can be; None does not cut."""
    if most is None or len(rows) <= most:
        return [rows]
    return np.array_split(rows, -(-len(rows) // most))


def why_whole(methods: Sequence[Method]) -> str | None:
    """Why an arm's batches must not be cut; None if they may."""
    for method in methods:
        sees = any(getattr(type(method), hook) is not getattr(Method, hook) for hook in CONCERNED)
        if sees and (reason := method.config.whole_batch):
            return reason
    return None


@dataclass
class BatchParts:
    """The parts of one batch, as methods see them before the first.

    Args:
        steps: their passes, in the order of the batch.
        sizes: examples of each.
        shared: the batch among the processes that share it, where there are several; the parts are then of this one's rows.
    """

    steps: Sequence[BatchPass]
    sizes: Sequence[int]
    shared: SharedBatch | None = None
    _random: list[RandomState] = field(default_factory=list, init=False)

    def rehearse(self) -> None:
        start, self._random = random_state(), []
        for step in self.steps:
            self._random.append(random_state())
            try:
                step.forward_backward()
            except Rehearsed:
                continue
            raise RuntimeError("a rehearsal was not ended by who asked for it")
        restore_random_state(start)

    def join(self, values: Sequence[Tensor]) -> Tensor:
        whole = [value.view(-1, size, *value.shape[1:]) for value, size in zip(values, self.sizes, strict=True)]
        own = torch.cat(whole, dim=1)
        return (own if self.shared is None else self.shared.gathered(own)).flatten(0, 1)

    def divide(self, values: Tensor) -> list[Tensor]:
        rows = sum(self.sizes) if self.shared is None else len(self.shared.rows)
        whole = values.view(-1, rows, *values.shape[1:])
        own = whole if self.shared is None else self.shared.part(whole)
        parts = torch.split(own, list(self.sizes), dim=1)
        return [part.flatten(0, 1) for part in parts]

    def forward_backward(self) -> Tensor:
        """The gradients of all parts; returns the batch's loss times its share of the step."""
        total = torch.zeros((), device=self.steps[0].run.device)
        for number, step in enumerate(self.steps):
            if self._random:  # each as it was rehearsed
                restore_random_state(self._random[number])
            total += step.forward_backward() * step.share
        return total


def forward_backward(
    run: RunInProgress, batches: Sequence[Sequence[Batch]], shared: Sequence[SharedBatch] = ()
) -> Tensor:
    """Gradients of the mean loss over all examples of a step, however they are cut into batches, and these into parts.

    Args:
        batches: the parts of each batch, in its order; one part is the batch itself.
        shared: each batch among the processes that share it, where there are several; the parts are then of this one's rows. The
            loss and the gradients are this one's, and add up to the step's over all processes.
    """
    examples = sum(len(part["labels"]) for parts in batches for part in parts)
    if shared:
        examples = sum(len(one.rows) for one in shared)
    total = torch.zeros((), device=run.device)
    for number, parts in enumerate(batches):
        if len(parts) == 1 and not shared:
            one = _passes(run, parts, examples)[0]
            total += one.forward_backward() * one.share
            continue
        sizes, passes = [len(part["labels"]) for part in parts], _passes(run, parts, examples)
        among = shared[number] if shared else None
        if among is not None:
            among.begin()
            passes = _of_shared(passes, sizes, among)
        cut = BatchParts(_emphasised(run, passes, sizes, among), sizes, among)
        for method in run.methods:
            method.before_parts(cut)
        total += cut.forward_backward()
    return total


def _passes(run: RunInProgress, parts: Sequence[Batch], examples: int) -> list[BatchPass]:
    found = []
    for part in parts:
        share = len(part["labels"]) / examples
        for method in run.methods:
            part = method.inputs(part)
        found.append(BatchPass(run, part, share))
    return found


def _of_shared(passes: Sequence[BatchPass], sizes: Sequence[int], shared: SharedBatch) -> list[BatchPass]:
    """The passes of a process's rows, each with its place among them."""
    places = [PlaceInBatch(shared, sum(sizes[:number]), size) for number, size in enumerate(sizes)]
    return [
        replace(one, share=0.0 if shared.idle else one.share, place=place)
        for one, place in zip(passes, places, strict=True)
    ]


def _emphasised(
    run: RunInProgress, passes: Sequence[BatchPass], sizes: Sequence[int], shared: SharedBatch | None
) -> list[BatchPass]:
    """The parts of a batch, each with what its loss counts more or less than its examples."""
    weights = [_weight(run, one.batch) for one in passes]
    whole, examples = sum(weights), sum(sizes)
    if shared is not None:
        whole, examples = shared.total(whole), len(shared.rows)
    if not whole:  # no token counts, and every loss is 0
        return list(passes)
    emphases = [weight * examples / (whole * size) for weight, size in zip(weights, sizes, strict=True)]
    return [replace(one, emphasis=emphasis) for one, emphasis in zip(passes, emphases, strict=True)]


def _weight(run: RunInProgress, batch: Batch) -> float:
    """What the loss of a batch is divided by."""
    own = [weight for method in run.methods if (weight := method.weight(batch)) is not None]
    return own[-1] if own else run.objective.weight(batch)
