"""What a trained classifier makes of a text: the input of its last linear layer, one vector per example."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fairtune.ledger.records import EVENT as RECORD
from fairtune.tasks.tokens.encoded_splits import Indices
from fairtune.training.classification import Classification, quick_batches, to_device
from fairtune.training.loop import TrainingRun
from fairtune.training.objectives import scoring

NAME = "representation"
"""Of the record that is kept."""
MOST = 1_000
"""Examples of the test split that are kept."""
Answer = tuple[nn.Module, Tensor, Tensor]
"""A module, what it was given, and what it gave."""


def keep_representation(run: TrainingRun) -> None:
    """Record what the scored weights make of test examples, for the report to draw; a run is finished without it too."""
    now = run.progress
    try:
        found = representation(run)
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        run.warn(f"no representation was kept ({type(error).__name__}: {error})")
        return
    if found is not None:
        step = now.step if now.best_step is None else now.best_step
        run.keep(NAME, step, found)
        run.log.write(RECORD, now.unit, name=NAME, step=step, epoch=now.epoch, examples=len(found["rows"]))


def representation(run: TrainingRun) -> dict[str, npt.NDArray[Any]] | None:
    """Vectors of test examples by the run's model as it is now: after scoring, with the best weights.

    Draws nothing and changes nothing, so that a run is the same bits with or without it.

    Returns:
        `states` [examples, width] in half precision and `rows`, which test example each is; None where there is no test
        split, or no layer whose output is the logits.
    """
    objective = run.objective
    if type(objective) is not Classification or "test" not in objective.data:
        return None
    rows = chosen_rows(len(objective.data["test"]))
    data = objective.data["test"].take(rows)
    states: npt.NDArray[np.float16] | None = None
    layer: nn.Module | None = None
    with scoring(run.model, run.methods):
        for places in quick_batches(data, run.device):
            run.check_stop()
            batch = {name: part for name, part in to_device(data, places, run.device).items() if name != "labels"}
            logits, answers = answers_of(run.model, batch, layer)
            found = seen_by_last_layer(logits, answers)
            if found is None:
                return None
            layer, pooled = found
            if states is None:
                states = np.empty((len(rows), pooled.shape[-1]), dtype=np.float16)
            states[places] = _half(pooled)
    return None if states is None else {"states": states, "rows": rows.astype(np.int32)}


def chosen_rows(examples: int) -> Indices:
    """All examples, or so many that lie evenly among them: the same for every arm and seed."""
    if examples <= MOST:
        return np.arange(examples)
    return np.linspace(0, examples - 1, MOST).round().astype(np.int64)


def answers_of(model: nn.Module, batch: dict[str, Tensor], layer: nn.Module | None) -> tuple[Tensor, list[Answer]]:
    """The logits of a batch, and what modules were given that answered in as many values as there are classes.

    Args:
        layer: the only module that is looked at; all, if it is not known yet.
    """
    seen: list[Answer] = []

    def remember(module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
        if given and isinstance(given[0], Tensor) and isinstance(output, Tensor):
            seen.append((module, given[0], output))

    hooks = [module.register_forward_hook(remember) for module in ([layer] if layer is not None else model.modules())]
    try:
        logits: Tensor = model(**batch).logits
    finally:
        for hook in hooks:
            hook.remove()
    return logits, [one for one in seen if one[2].shape[-1:] == logits.shape[-1:]]


def seen_by_last_layer(logits: Tensor, answers: list[Answer]) -> tuple[nn.Module, Tensor] | None:
    """The innermost module whose output is the logits, and what it was given for the token that counts.

    Heads that answer for every token, as transformers' GPT-like ones do, have the logits among their answers.
    """
    for module, given, output in answers:  # inner modules answer before those that hold them
        if output.shape == logits.shape and torch.equal(output.float(), logits.float()):
            return module, given
        if output.ndim == 3 and given.ndim == 3 and len(output) == len(logits):
            same = (output.float() == logits.float()[:, None]).all(dim=-1)
            if bool(same.any(dim=1).all()):
                last = same.shape[1] - 1 - same.flip(1).int().argmax(dim=1)
                return module, given[torch.arange(len(given), device=given.device), last]
    return None


def _half(states: Tensor) -> npt.NDArray[np.float16]:
    most = torch.finfo(torch.float16).max
    return np.asarray(states.float().clamp(-most, most).cpu().numpy().astype(np.float16))
