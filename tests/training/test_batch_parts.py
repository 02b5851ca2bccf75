"""A batch that is cut into parts has the gradient of the whole, with every method and every kind of task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fairtune.core.seeding import random_state, restore_random_state
from fairtune.execution.run import prepare_run
from fairtune.ledger.events import EventLog
from fairtune.methods.base import Method
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import create_method, parse_method_use, registered
from fairtune.models.model_parts import token_embeddings
from fairtune.training.batch_parts import BatchParts, cut_rows, forward_backward, why_whole
from tests.execution.conftest import ToyStudy, toy  # noqa: F401 - a fixture
from tests.execution.made_texts import job_of as text_job
from tests.execution.made_texts import make_model, study_of
from tests.execution.test_setfit import job_of as pairs_job

MAP = {"bpsom": {"hidden": 16, "grid": 4, "reliability": 0.5, "relabel": 2, "alpha": 0.5, "prune": None}}
UNEQUAL = {"weighted_ce": {"weights": [1, 3]}}
ARMS: list[list[Any]] = [
    [],
    [UNEQUAL],
    [{"bpsom": {**MAP["bpsom"], "update": "sequential"}}, "rdrop", UNEQUAL],
    [MAP, "rdrop", {"fgm": {"clean": False}}, "layerwise_lr"],
    ["freelb", MAP, UNEQUAL, "ema"],
    [MAP, {"peft": {"target_modules": ["value"]}}, "pgd"],
    [{"peft": {"type": "adalora", "target_modules": ["value"], "total_step": 20}}, UNEQUAL],
    [{"focal": {"alpha": [0.3, 0.7]}}, "rdrop", "orthogonal_qk"],
    ["label_smoothing", "bitfit", "freeze", "fgm", "augment"],
]
"""Together they have every method."""


def prepared(job: Any, steps: int = 0) -> Any:
    job.run.path.mkdir(parents=True)
    run = prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run
    for module in run.model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    for _ in range(steps):
        run.advance()
    return run


def differ_in_copies(run: Any) -> None:
    """In place of dropout, whose draws depend on the cut: the second copies of a doubled batch are seen a little larger."""

    def grow(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        one = len(output) // 2
        return torch.cat([output[:one], 1.3 * output[one:]])

    token_embeddings(run.model).register_forward_hook(grow)


def learned(run: Any, *sizes: int) -> dict[str, Tensor]:
    """The loss of two batches, gradients and buffers, as if it had been the first time; each batch cut into so many parts."""
    buffers, drawn = [buffer.clone() for buffer in run.model.buffers()], random_state()
    rows = [np.arange(0, 14), np.arange(14, 19)]
    parts = [np.array_split(some, size) for some, size in zip(rows, sizes, strict=True)]
    loss = forward_backward(run, [[run.objective.batch(part, run.device) for part in some] for some in parts])
    found = {"loss": loss.clone()}
    found |= {name: p.grad.clone() for name, p in run.model.named_parameters() if p.grad is not None}
    found |= {name: buffer.clone() for name, buffer in run.model.named_buffers() if buffer.is_floating_point()}
    run.model.zero_grad()
    for buffer, before in zip(run.model.buffers(), buffers, strict=True):
        buffer.copy_(before)
    restore_random_state(drawn)
    return found


def check_parts(run: Any) -> None:
    whole = learned(run, 1, 1)
    for sizes in ((2, 1), (4, 5)):
        parts = learned(run, *sizes)
        assert parts.keys() == whole.keys()
        for name, expected in whole.items():
            torch.testing.assert_close(
                parts[name], expected, atol=1e-6, rtol=1e-5, msg=lambda text, n=name: f"{n}: {text}"
            )
    again = learned(run, 1, 1)
    assert all(torch.equal(again[name], expected) for name, expected in whole.items()), "nothing is left of the parts"


def test_every_method_is_tried() -> None:
    assert {parse_method_use(use).name for arm in ARMS for use in arm} == set(registered())


@pytest.mark.parametrize("methods", ARMS, ids=str)
def test_a_classifiers_parts_have_the_gradient_of_the_whole(toy: ToyStudy, methods: list[Any]) -> None:  # noqa: F811
    run = prepared(toy.job("runs", methods, batch_size=8), steps=3)
    if "rdrop" in str(methods):
        differ_in_copies(run)
    check_parts(run)


@pytest.mark.parametrize("methods", [[], ["fgm"], ["freelb"]], ids=str)
def test_a_language_models_parts_have_it_too_also_where_tokens_do_not_count(tmp_path: Path, methods: list[Any]) -> None:
    study = study_of(make_model(tmp_path / "gpt"), tmp_path)
    study["arms"] = {"baseline": {"methods": methods}}
    run = prepared(text_job(study, tmp_path / "runs"))
    plain = run.objective.batch

    def holes(rows: Any, device: Any) -> Any:
        batch = plain(rows, device)
        labels = batch["labels"].clone()
        labels[torch.from_numpy(rows % 3 == 0), 5:] = -100
        return {**batch, "labels": labels}

    check_parts(run)
    run.objective.batch = holes
    check_parts(run)


def test_pairs_have_it_too(toy: ToyStudy) -> None:  # noqa: F811
    run = prepared(pairs_job(toy, "runs"))
    run.objective.order(8, 0, 0)
    check_parts(run)


def test_rows_are_cut_evenly_and_only_where_there_are_more() -> None:
    rows = np.arange(10)
    assert [list(part) for part in cut_rows(rows, None)] == [list(rows)] == [list(part) for part in cut_rows(rows, 10)]
    assert [len(part) for part in cut_rows(rows, 4)] == [4, 3, 3]
    assert list(np.concatenate(cut_rows(rows, 3))) == list(rows)


def test_copies_keep_the_order_of_the_batch() -> None:
    parts = BatchParts([], [2, 1])
    whole = parts.join([torch.tensor([1, 2, 11, 12]), torch.tensor([3, 13])])
    assert whole.tolist() == [1, 2, 3, 11, 12, 13]
    assert [part.tolist() for part in parts.divide(whole)] == [[1, 2, 11, 12], [3, 13]]


class Undeclared(MethodConfig):
    """A method of somebody else's."""


class Declared(Undeclared):
    @property
    def whole_batch(self) -> None:
        return None


class OwnLoss(Method):
    def loss(self, outputs: Any, batch: Any) -> Tensor:  # noqa: ARG002
        found: Tensor = outputs.loss
        return found


def test_who_needs_the_whole_batch_says_why_and_who_says_nothing_is_not_cut() -> None:
    uses = [
        parse_method_use(use)
        for use in ({"fgm": {"target": "table"}}, "bpsom", {"fgm": {"target": "table", "epsilon": 0}})
    ]
    table, bpsom, idle = (create_method(use, 0) for use in uses)
    assert "moves the token embeddings once for all examples" in str(why_whole([bpsom, table]))
    assert why_whole([bpsom, idle]) is None
    assert "Undeclared does not say" in str(why_whole([OwnLoss(Undeclared())]))
    assert why_whole([OwnLoss(Declared())]) is None
    assert why_whole([Method(Undeclared())]) is None, "it sees no batch"
