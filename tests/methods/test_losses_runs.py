"""Losses and R-Drop in studies: what is refused and when, what trains as without them, and with which other methods."""

# ruff: noqa: F811 - fixtures of another room are imported by their names
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairtune.training.batch_parts import forward_backward
from torch import Tensor
from transformers import BertConfig, BertModel

from fairtune.core.errors import FairtuneError
from fairtune.execution.run import prepare_run
from fairtune.ledger.events import EventLog, counted_events
from fairtune.methods.registry import create_method, parse_method_use, registered
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from fairtune.testing.toy import VOCABULARY, make_tokenizer
from tests.execution.conftest import ToyStudy, digests, perform_here, toy, toy_source  # noqa: F401 - a fixture

SHORT = {"steps": 4, "evaluate": 4, "eval_examples": 20}
SMALL_MAP = {"bpsom": {"hidden": 12, "grid": [4, 3], "reliability": 0.5, "relabel": 2}}


def study(*methods: Any, task: Any = "sst2", model: str = "minilm") -> Any:
    arms = {"baseline": {}, "x": {"methods": list(methods)}}
    return load_study({"study": "s", "task": task, "model": model, "arms": arms})


@pytest.mark.parametrize(("method", "expected"), [
    ({"focal": {"gamma": -1}}, r"arms.x.methods\[0\].focal.gamma: found -1; allowed: a number of at least 0"),
    ({"focal": {"gamma": "2"}}, "gamma: found '2'"),
    ({"focal": {"gamma": float("nan")}}, "gamma: found nan"),
    ({"focal": {"alpha": 1.5}}, "alpha: found 1.5"),
    ({"focal": {"alpha": -0.25}}, "alpha: found -0.25"),
    ({"focal": {"alpha": "ballanced"}}, "alpha: found 'ballanced'.*Did you mean 'balanced'"),
    ({"focal": {"alpha": [1, -1]}}, r"alpha"),
    ({"focal": {"beta": 1}}, "beta: unknown key"),
    ({"weighted_ce": {"weights": "balance"}}, "weights: found 'balance'.*Did you mean 'balanced'"),
    ({"weighted_ce": {"weights": [1, 0]}}, "weights"),
    ({"weighted_ce": {"weights": {"neg": 1, "pos": -2}}}, "weights"),
    ({"weighted_ce": {"weights": []}}, "weights"),
    ({"weighted_ce": {"weights": None}}, "weights: found None"),
    ({"weighted_ce": {"weights": 1.3}}, "weights: found 1.3"),
    ({"label_smoothing": {"smoothing": 1}}, "smoothing: found 1; allowed: a number of at least 0 and below 1"),
    ({"label_smoothing": {"smoothing": -0.1}}, "smoothing: found -0.1"),
    ({"rdrop": {"alpha": -1}}, "alpha: found -1; allowed: a number of at least 0"),
])  # fmt: skip
def test_impossible_settings_are_refused_when_the_study_is_read(method: Any, expected: str) -> None:
    with pytest.raises(StudyError, match=expected) as caught:
        study(method)
    assert len(caught.value.problems) == 1, caught.value


def test_two_losses_are_refused_when_the_study_is_read() -> None:
    for other in ("weighted_ce", "label_smoothing", "focal"):
        with pytest.raises(StudyError, match=rf"methods\[1\]: '{other}' and 'focal' both change the loss"):
            study("focal", other)
    with pytest.raises(StudyError, match="both change the copies of an example in a batch"):
        study("rdrop", "rdrop")
    study("focal", "rdrop", "bpsom")


@pytest.mark.parametrize("name", ["focal", "weighted_ce", "label_smoothing", "rdrop"])
def test_a_language_model_is_refused(name: str) -> None:
    with pytest.raises(StudyError, match=f"'{name}' does not work with language models"):
        study(name, task="tinystories", model="gpt-medium-512")


@pytest.mark.parametrize(("method", "expected"), [
    ({"weighted_ce": {"weights": [1, 1.3, 2]}}, "weights has 3 numbers, but the task has 2 classes; .* this order: neg, pos"),
    ({"weighted_ce": {"weights": {"neg": 1, "poss": 2}}}, "weights names 'poss', .* Did you mean 'pos'"),
    ({"weighted_ce": {"weights": {"neg": 1}}}, "weights has nothing for 'pos'"),
    ({"focal": {"alpha": [1, 1, 1]}}, "alpha has 3 numbers, but the task has 2 classes"),
])  # fmt: skip
def test_weights_that_do_not_fit_the_task_are_refused_when_the_study_is_planned(
    toy: ToyStudy, method: Any, expected: str
) -> None:
    with pytest.raises(FairtuneError, match=rf"arm 'arm', method '{next(iter(method))}': {expected}"):
        toy.job("runs", [method])


def run(toy: ToyStudy, name: str, methods: list[Any], **train: Any) -> tuple[Any, list[dict[str, Any]]]:
    job = toy.job(name, methods, **{**SHORT, **train})
    result = perform_here(job)
    assert result["status"] == "finished", result.get("reason")
    return job.run, [e for e in counted_events(job.run.events) if e["event"] == "step"]


def test_arms_whose_methods_do_nothing_end_with_the_bits_of_the_baseline(toy: ToyStudy) -> None:
    plain, _ = run(toy, "plain", [])
    for idle in ([{"focal": {"gamma": 0}}, {"rdrop": {"alpha": 0}}], [{"weighted_ce": {"weights": [1.3, 1.3]}}]):
        folder, _ = run(toy, str(idle), idle)
        assert digests(folder.path) == digests(plain.path)


@pytest.mark.parametrize(("methods", "precision"), [
    (["focal", SMALL_MAP], "bf16"),
    (["rdrop", "orthogonal_qk"], "fp32"),
    (["rdrop", SMALL_MAP, {"weighted_ce": {"weights": {"neg": 1, "pos": 1.3}}}], "bf16"),
    (["label_smoothing", "rdrop", "bitfit"], "bf16"),
], ids=str)  # fmt: skip
def test_they_work_beside_other_methods_in_half_precision_and_with_accumulation(
    toy: ToyStudy, methods: list[Any], precision: str
) -> None:
    _, steps = run(toy, "runs", methods, precision=precision, accumulate=2, batch_size=8)
    assert all(np.isfinite([e["loss"], e["grad_norm"]]).all() for e in steps)
    assert [e["examples"] for e in steps] == [16] * 4, "an example counts once, however often it is seen"


class Passes:
    """A run of the toy task that is about to begin, to go through batches with these methods or those."""

    def __init__(self, toy: ToyStudy) -> None:
        job = toy.job("passes")
        job.run.path.mkdir(parents=True)
        self.run: Any = prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run

    def __call__(self, methods: list[Any], *groups: range, dropout: bool = True) -> tuple[float, list[Tensor]]:
        """The mean loss over groups of rows, and its gradients."""
        self.run.methods = [create_method(parse_method_use(method), 0) for method in methods]
        for method in self.run.methods:
            method.begin(self.run.objective.training_data)
        self.run.model.train(dropout).zero_grad()
        torch.manual_seed(0)
        batches = [self.run.objective.batch(np.array(group), self.run.device) for group in groups or (range(20),)]
        loss = float(forward_backward(self.run, [[batch] for batch in batches]))
        return loss, [p.grad.clone() for p in self.run.model.parameters() if p.grad is not None]


@pytest.fixture(scope="module")
def passes(tiny_model: Path, tiny_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Passes:
    return Passes(ToyStudy(toy_source(tiny_model, tiny_task), tmp_path_factory.mktemp("passes")))


def same_bits(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("method", [
    {"focal": {"gamma": 0}},
    {"weighted_ce": {"weights": [1.3, 1.3]}},
    {"weighted_ce": {"weights": "balanced"}},  # of the toy task, whose classes are of one size
    {"label_smoothing": {"smoothing": 0}},
    {"rdrop": {"alpha": 0}},
], ids=str)  # fmt: skip
def test_settings_that_do_nothing_have_the_gradients_of_the_baseline_bit_for_bit(passes: Passes, method: Any) -> None:
    plain, idle = passes([]), passes([method])
    assert plain[0] == idle[0]
    assert same_bits(plain[1], idle[1])


def test_each_loss_takes_the_place_of_the_models_own(passes: Passes) -> None:
    found = {name: passes(methods) for name, methods in {
        "plain": [],
        "halved": [{"focal": {"gamma": 0, "alpha": [0.5, 0.5]}}],
        "focal": ["focal"],
        "weighted": [{"weighted_ce": {"weights": {"pos": 1.3, "neg": 1}}}],
        "smoothed": ["label_smoothing"],
    }.items()}  # fmt: skip
    loss = {name: value for name, (value, _) in found.items()}
    assert loss["halved"] == pytest.approx(loss["plain"] / 2, rel=1e-6)
    for half, whole in zip(found["halved"][1], found["plain"][1], strict=True):
        torch.testing.assert_close(half, whole / 2, atol=1e-6, rtol=1e-4)
    assert 0.1 * loss["plain"] < loss["focal"] < 0.5 * loss["plain"], "about a quarter, where p is about a half"
    assert len({round(value, 9) for value in loss.values()}) == 5
    for near in ("weighted", "smoothed"):
        assert loss[near] == pytest.approx(loss["plain"], abs=0.05)


@pytest.mark.parametrize("loss", ["focal", "label_smoothing", {"weighted_ce": {"weights": [1, 1.3]}}], ids=str)
def test_the_order_of_a_loss_and_rdrop_does_not_matter(passes: Passes, loss: Any) -> None:
    one, other = passes([loss, "rdrop"]), passes(["rdrop", loss])
    assert one[0] == other[0]
    assert same_bits(one[1], other[1])
    assert one[0] != passes(["rdrop"])[0]
    assert one[0] != passes([loss])[0]


@pytest.mark.parametrize("methods", [["rdrop"], ["rdrop", "focal"]], ids=str)
def test_without_dropout_rdrop_has_the_gradients_of_the_loss_alone_however_batches_are_cut(
    passes: Passes, methods: list[Any]
) -> None:
    _, expected = passes(methods[1:], range(20), dropout=False)
    for cut in ([range(20)], [range(3), range(3, 20)]):
        _, found = passes(methods, *cut, dropout=False)
        for one, same in zip(found, expected, strict=True):
            torch.testing.assert_close(one, same, atol=1e-6, rtol=1e-4)


def test_with_dropout_rdrop_adds_the_divergence_of_two_masks(passes: Passes) -> None:
    nearly_none, one, many = (passes([{"rdrop": {"alpha": alpha}}])[0] for alpha in (1e-9, 1.0, 1000.0))
    assert one > nearly_none
    assert many - nearly_none == pytest.approx(1000 * (one - nearly_none), rel=0.02)


def test_rdrop_on_a_model_without_dropout_fails_with_the_reason(toy: ToyStudy, tmp_path: Path) -> None:
    folder = tmp_path / "no-dropout"
    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=128, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    toy.source["model"] = str(folder)
    result = perform_here(toy.job("runs", ["rdrop"], steps=20))
    assert result["status"] == "failed"
    assert (
        "rdrop: in 10 steps the two passes of an example never differed, so the model has no dropout"
        in result["reason"]
    )


def test_what_a_step_is_expected_to_cost_is_stated() -> None:
    factors = {
        name: registered()[name].config().step_factor for name in ("focal", "weighted_ce", "label_smoothing", "rdrop")
    }
    assert factors == {"focal": 1.0, "weighted_ce": 1.0, "label_smoothing": 1.0, "rdrop": 2.0}
