"""What holds for every method, each in one table: settings, idle settings, costs, halves of a batch, tasks that it is for."""

# ruff: noqa: F811 - fixtures of another room are imported by their names
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairtune.core.errors import FairtuneError
from fairtune.execution.prepare import prepare_run
from fairtune.ledger.events import EventLog
from fairtune.methods.adversarial import FGMConfig, FreeLBConfig, PGDConfig
from fairtune.methods.base import Method
from fairtune.methods.bpsom import BPSOMConfig
from fairtune.methods.registry import create_method, is_control, parse_method_use, registered
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from fairtune.testing import toy_use
from fairtune.training.step import accumulate_gradients, make_batches
from tests.execution.conftest import ToyStudy, digests, perform_here, toy, toy_source  # noqa: F401 - a fixture

METHODS = sorted(registered())


def read(*methods: Any, **study: Any) -> Any:
    arms = {"baseline": {}, "x": {"methods": list(methods)}}
    return load_study({"study": "s", "task": "sst2", "model": "minilm", "arms": arms, **study}).methods("x")


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_whole_and_its_settings_survive_their_json(name: str) -> None:
    known = registered()[name]
    assert known.help().endswith((".", ")"))
    assert known.excludes
    for use in map(parse_method_use, (name, toy_use(name))):
        assert parse_method_use(use.as_json()) == use
        method = create_method(use, seed=3)
        assert (type(method), method.seed, method.config) == (known, 3, use.config)
        assert method.needs <= {"whole_batch"}


def test_the_default_hooks_change_nothing() -> None:
    method, model = Method(BPSOMConfig()), torch.nn.Linear(3, 2)
    groups = [{"params": list(model.parameters()), "lr": 1.0}]
    assert method.prepare(model) is model
    assert method.param_groups(groups, model) is groups
    assert method.loss(None, {}) is method.penalty(None, {}) is None
    assert method.around_backward(None, lambda: torch.tensor(5.0)) == 5.0  # type: ignore[arg-type]
    assert method.plain(model) is model
    assert method.state_dict() == {}


def test_the_defaults_are_the_published_settings() -> None:
    assert FGMConfig() == FGMConfig(epsilon=1.0, norm="l2", clean=True, target="output")
    assert PGDConfig() == PGDConfig(steps=3, step_size=0.3, epsilon=1.0, norm="l2", clean=True, target="output")
    assert FreeLBConfig() == FreeLBConfig(steps=3, step_size=0.1, epsilon=0.6, norm="l2", clean=False)
    assert BPSOMConfig() == BPSOMConfig(
        hidden=128, grid=20, alpha=0.25, som_lr=(0.2, 0.05), radius=(2, 0), reliability=0.95, prune=0.02, update="batch",
        relabel="epoch", topology="rectangular", schedule="epoch",
    )  # fmt: skip


@pytest.mark.parametrize(("method", "expected"), [
    ({"fgm": {"epsilon": -1}}, r"arms.x.methods\[0\].fgm.epsilon: found -1; allowed"),
    ({"fgm": {"norm": "l1"}}, "norm: found 'l1'.*allowed: l2 or linf"),
    ({"fgm": {"steps": 3}}, "steps: unknown key"),
    ({"pgd": {"steps": 1.5}}, "steps: found 1.5"),
    ({"freelb": {"target": "table"}}, "target: unknown key"),
    ({"augment": {"delete": 1.5}}, "delete: found 1.5; allowed"),
    ({"augment": {"function": "translate"}}, "function: found 'translate'; allowed: a function as package.module:name"),
    ({"augment": {"function": 3}}, "function: found 3"),
    ({"bpsom": {"alpha": "0.25"}}, "alpha: found '0.25'"),
    ({"bpsom": {"grid": 4.5}}, "grid: found 4.5"),
    ({"bpsom": {"radius": [0, 2]}}, r"radius is \[0, 2\], but it falls"),
    ({"bpsom": {"relabel": "step"}}, "relabel: found 'step'"),
    ({"bpsom": {"schedule": "steps"}}, "schedule: found 'steps'.*Did you mean 'step'"),
    ({"ema": {"decay": 1.0}}, "decay: found 1"),
    ({"focal": {"gamma": float("nan")}}, "gamma: found nan"),
    ({"focal": {"alpha": "ballanced"}}, "alpha: found 'ballanced'.*Did you mean 'balanced'"),
    ({"weighted_ce": {"weights": {"neg": 1, "pos": -2}}}, "weights"),
    ({"weighted_ce": {"weights": None}}, "weights: found None"),
    ({"label_smoothing": {"smoothing": 1}}, "smoothing: found 1; allowed: a number of at least 0 and below 1"),
    ({"rdrop": {"alpha": -1}}, "alpha: found -1; allowed: a number from 0"),
    ({"layerwise_lr": {"decay": 1.1}}, "decay: found 1.1"),
    ({"layerwise_lr": {"deca": 0.9}}, "deca: unknown key.*Did you mean 'decay'"),
    ({"layerwise_lr": {"groups": []}}, "groups: is empty"),
    ({"layerwise_lr": {"groups": [{"match": "a"}]}}, r"groups\[0\]: give exactly one of lr .* and scale"),
    ({"layerwise_lr": {"groups": [{"match": "a", "part": "head", "lr": 1e-5}]}}, "exactly one of match .* and part"),
    ({"layerwise_lr": {"groups": [{"match": "a", "lr": 0.5}]}}, r"groups\[0\].lr: found 0.5; .* at most 0.1"),
    ({"layerwise_lr": {"groups": [{"match": "(", "scale": 1}]}}, r"'\(' is not a regular expression: missing \)"),
    ({"layerwise_lr": {"groups": [{"match": "a", "scale": 1}], "decay": 0.9}}, "groups is given together with decay"),
    ({"orthogonal_qk": {"parts": []}}, "nothing would change"),
    ({"orthogonal_qk": {"parts": ["q", "q"]}}, "same part twice"),
    ({"orthogonal_qk": {"layers": "3-1"}}, "ends before it starts"),
    ({"orthogonal_qk": {"init": "orthonormal"}}, "init: found 'orthonormal'"),
    ({"orthogonal_qk": {"std": 0.0}}, "std"),
])  # fmt: skip
def test_impossible_settings_are_refused_when_the_study_is_read(method: Any, expected: str) -> None:
    with pytest.raises(StudyError, match=expected) as caught:
        read(method)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("name", [name for name in METHODS if "language_model" not in registered()[name].kinds])
def test_a_language_model_is_refused_by_methods_for_classes(name: str) -> None:
    with pytest.raises(StudyError, match=f"'{name}' does not work with language models"):
        read(name, task="tinystories", model="gpt-medium-512")


@pytest.mark.parametrize(("method", "expected"), [
    ({"weighted_ce": {"weights": [1, 1.3, 2]}}, "weights has length 3, but the task has 2 classes; .*: neg, pos"),
    ({"weighted_ce": {"weights": {"neg": 1, "poss": 2}}}, "weights names poss, .* Did you mean 'pos'"),
    ({"focal": {"alpha": [1, 1, 1]}}, "alpha has length 3, but the task has 2 classes"),
    ("bpsom", "its map has 400 cells, more than the 200 .*at most 14"),
])  # fmt: skip
def test_what_does_not_fit_the_task_is_refused_when_the_study_is_planned(
    toy: ToyStudy, method: Any, expected: str
) -> None:
    name = method if isinstance(method, str) else next(iter(method))
    with pytest.raises(FairtuneError, match=rf"arm 'arm', method '{name}': {expected}"):
        toy.job("runs", [method])


@pytest.mark.parametrize(("method", "passes"), [
    ("fgm", 2), ({"fgm": {"clean": False}}, 5 / 3), ({"fgm": {"epsilon": 0}}, 1), ("pgd", 2 + 2 * 2 / 3),
    ({"pgd": {"steps": 1}}, 2), ({"pgd": {"clean": False}}, 1 + 3 * 2 / 3), ("freelb", 3),
    ({"freelb": {"clean": True, "steps": 2}}, 3), ("rdrop", 2), ({"rdrop": {"alpha": 0}}, 1), ("focal", 1), ("ema", 1),
], ids=str)  # fmt: skip
def test_what_a_step_is_expected_to_cost_is_counted_in_passes(method: Any, passes: float) -> None:
    assert parse_method_use(method).config.step_factor == pytest.approx(passes)


class Learner:
    """A run of the toy task that is about to begin, to go through batches with these methods or those."""

    def __init__(self, toy: ToyStudy) -> None:
        job = toy.job("passes")
        job.run.path.mkdir(parents=True)
        self.run: Any = prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run

    def __call__(self, methods: list[Any], *parts: range, dropout: bool = True) -> tuple[float, Tensor]:
        """The loss of a step over parts of the training examples, and all its gradients."""
        self.run.methods = [create_method(parse_method_use(method), 0) for method in methods]
        for method in self.run.methods:
            method.begin(self.run.objective.training_data)
        self.run.model.train(dropout).zero_grad()
        torch.manual_seed(0)
        rows = [np.array(part) for part in parts or (range(16),)]
        loss = accumulate_gradients(self.run, rows, make_batches(self.run, rows))
        return loss, torch.cat([p.grad.flatten() for p in self.run.model.parameters() if p.grad is not None])


@pytest.fixture(scope="module")
def learned(tiny_model: Path, tiny_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Learner:
    return Learner(ToyStudy(toy_source(tiny_model, tiny_task), tmp_path_factory.mktemp("passes")))


IDLE: list[Any] = [
    {"fgm": {"epsilon": 0}}, {"fgm": {"epsilon": 0, "clean": False, "target": "table"}}, {"pgd": {"step_size": 0}},
    {"freelb": {"epsilon": 0, "clean": True}}, {"focal": {"gamma": 0}}, {"label_smoothing": {"smoothing": 0}},
    {"weighted_ce": {"weights": [1.3, 1.3]}}, {"rdrop": {"alpha": 0}}, {"augment": {"delete": 0, "swap": 0}},
    {"ema": {"decay": 0}}, {"layerwise_lr": {"decay": 1, "head_multiplier": 1}},
    {"layerwise_lr": {"groups": [{"match": "", "scale": 1}]}},
]  # fmt: skip


@pytest.mark.parametrize("method", IDLE, ids=str)
def test_idle_settings_learn_bit_for_bit_as_without(learned: Learner, method: Any) -> None:
    use = parse_method_use(method)
    assert use.config.idle
    plain, idle = learned([], range(5), range(5, 16)), learned([method], range(5), range(5, 16))
    assert (idle[0], torch.equal(idle[1], plain[1])) == (plain[0], True)
    if use.name in ("fgm", "pgd", "freelb", "augment", "ema", "layerwise_lr"):
        acting = parse_method_use(use.name)
        assert is_control([use], [acting])
        assert not is_control([acting], [use])


def test_runs_of_idle_methods_end_with_the_bits_of_the_baseline(toy: ToyStudy) -> None:
    short = {"steps": 4, "evaluate": 2, "eval_examples": 20, "examples": 64}
    plain, idle = toy.job("plain", **short), toy.job("idle", [IDLE[0], IDLE[4], *IDLE[7:11]], **short)
    for job in (plain, idle):
        assert perform_here(job)["status"] == "finished"
    assert digests(idle.run.path) == digests(plain.run.path)


BY_EXAMPLE: list[Any] = [
    [], ["fgm"], [{"fgm": {"clean": False}}], ["pgd"], ["freelb"], ["focal"], [{"focal": {"alpha": "balanced"}}],
    ["label_smoothing"], ["rdrop"], ["rdrop", "focal"], ["ema", "layerwise_lr"],
]  # fmt: skip


@pytest.mark.parametrize("methods", BY_EXAMPLE, ids=str)
def test_halves_of_a_batch_add_up_to_the_whole_unless_a_method_says_otherwise(
    learned: Learner, methods: list[Any]
) -> None:
    assert not any(create_method(parse_method_use(method), 0).needs for method in methods)
    loss, whole = learned(methods, range(16), dropout=False)
    same, summed = learned(methods, range(6), range(6, 16), dropout=False)
    assert same == pytest.approx(loss, rel=1e-5)
    torch.testing.assert_close(summed, whole, atol=1e-6, rtol=1e-3)


def test_methods_that_need_the_whole_batch_say_so() -> None:
    uses = {**{name: toy_use(name) for name in METHODS}, "fgm-table": {"fgm": {"target": "table"}}}
    needing = {name for name, use in uses.items() if create_method(parse_method_use(use), 0).needs}
    assert needing == {"bpsom", "weighted_ce", "fgm-table"}


def test_each_loss_takes_the_place_of_the_models_own_and_rdrop_adds_to_any(learned: Learner) -> None:
    plain, gradient = learned([])
    half, halved = learned([{"focal": {"gamma": 0, "alpha": [0.5, 0.5]}}])
    assert half == pytest.approx(plain / 2, rel=1e-6)
    torch.testing.assert_close(halved, gradient / 2, atol=1e-6, rtol=1e-4)
    for loss in ("focal", "label_smoothing", {"weighted_ce": {"weights": [1, 1.3]}}):
        one, other = learned([loss, "rdrop"]), learned(["rdrop", loss])
        assert (one[0], torch.equal(one[1], other[1])) == (other[0], True), "whatever the order"
        assert one[0] not in (learned([loss])[0], learned(["rdrop"])[0])
    weak, one_, strong = (learned([{"rdrop": {"alpha": alpha}}])[0] for alpha in (1e-9, 1.0, 1000.0))
    assert strong - weak == pytest.approx(1000 * (one_ - weak), rel=0.02)


@pytest.mark.parametrize(("methods", "precision"), [
    (["focal", toy_use("bpsom")], "bf16"),
    (["rdrop", toy_use("bpsom"), {"weighted_ce": {"weights": [1, 1.3]}}], "bf16"),
    (["label_smoothing", "rdrop", "bitfit", "freelb"], "bf16"),
    ([{"fgm": {"target": "table"}}, "ema"], "bf16"),
], ids=str)  # fmt: skip
def test_methods_train_in_half_precision_and_with_accumulation(
    toy: ToyStudy, methods: list[Any], precision: str
) -> None:
    job = toy.job("runs", methods, precision=precision, accumulate=2, batch_size=8, steps=3, eval_examples=20)
    result = perform_here(job)
    assert result["status"] == "finished", result.get("reason")
