"""Adversarial training in studies: settings, what is refused, costs, precision, and company of other methods."""

# ruff: noqa: F811 - fixtures of another room are imported by their names
from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairtune.training.batch_parts import forward_backward
from torch import Tensor, nn

from fairtune.execution.run import prepare_run
from fairtune.ledger.events import EventLog
from fairtune.methods.adversarial import FGMConfig, FreeLBConfig, PGDConfig
from fairtune.methods.bpsom.model import active_head
from fairtune.methods.registry import create_method, is_control, parse_method_use
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from tests.execution.conftest import ToyStudy, toy  # noqa: F401 - a fixture
from tests.execution.made_texts import job_of, make_model, study_of

ATTACKS: dict[str, Any] = {
    "fgm": "fgm", "fgm-alone": {"fgm": {"clean": False}}, "fgm-table": {"fgm": {"target": "table"}},
    "pgd": {"pgd": {"steps": 2}}, "pgd-table-alone": {"pgd": {"steps": 2, "target": "table", "clean": False}},
    "freelb": {"freelb": {"steps": 2}}, "freelb-clean": {"freelb": {"steps": 2, "clean": True}},
}  # fmt: skip
SMALL = {"hidden": 8, "grid": 3, "reliability": 0.5, "relabel": 2, "prune": None}


def prepared(toy: ToyStudy, name: str, methods: list[Any], **train: Any) -> Any:
    job = toy.job(name, methods, **train)
    job.run.path.mkdir(parents=True)
    return prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run


def read(*methods: Any) -> Any:
    arms = {"baseline": {}, "x": {"methods": list(methods)}}
    return load_study({"study": "s", "task": "t", "model": "m", "arms": arms}).methods("x")


def test_the_defaults_are_the_published_settings() -> None:
    assert FGMConfig() == FGMConfig(epsilon=1.0, norm="l2", clean=True, target="output")
    assert PGDConfig() == PGDConfig(steps=3, step_size=0.3, epsilon=1.0, norm="l2", clean=True, target="output")
    assert FreeLBConfig() == FreeLBConfig(steps=3, step_size=0.1, epsilon=0.6, norm="l2", clean=False)


@pytest.mark.parametrize(("method", "expected"), [
    ({"fgm": {"epsilon": -1}}, "epsilon: found -1"),
    ({"fgm": {"epsilon": "1"}}, "epsilon: found '1'"),
    ({"fgm": {"epsilon": float("inf")}}, "epsilon"),
    ({"fgm": {"norm": "l1"}}, "norm: found 'l1'.*allowed: l2 or linf"),
    ({"fgm": {"steps": 3}}, "steps: unknown key"),
    ({"fgm": {"target": "weights"}}, "target: found 'weights'"),
    ({"pgd": {"steps": 0}}, "steps: found 0"),
    ({"pgd": {"steps": 1.5}}, "steps: found 1.5"),
    ({"pgd": {"step_size": -0.1}}, "step_size: found -0.1"),
    ({"freelb": {"steps": 0}}, "steps: found 0"),
    ({"freelb": {"target": "table"}}, "target: unknown key"),
])  # fmt: skip
def test_impossible_settings_are_refused_when_the_study_is_read(method: Any, expected: str) -> None:
    with pytest.raises(StudyError, match=expected):
        read(method)


def test_two_of_them_in_one_arm_are_refused() -> None:
    with pytest.raises(StudyError, match="'pgd' and 'fgm' both change the perturbation of the embeddings; keep one"):
        read("fgm", "pgd")
    with pytest.raises(StudyError, match="both change the perturbation of the embeddings"):
        read("freelb", "fgm")


@pytest.mark.parametrize("other", ["peft", "bitfit"])
def test_a_table_that_another_method_freezes_is_refused_when_the_study_is_read(other: str) -> None:
    table = {"fgm": {"target": "table"}}
    for methods in ((table, other), (other, table)):
        with pytest.raises(
            StudyError, match=rf"`target: table` moves .* but '{other}' freezes them; use `target: output`"
        ):
            read(*methods)
    assert len(read("fgm", other)) == 2
    assert len(read({"fgm": {"target": "table", "epsilon": 0}}, other)) == 2


def test_the_expected_cost_is_counted_in_passes() -> None:
    def factor(method: Any) -> float:
        return parse_method_use(method).config.step_factor

    third = pytest.approx
    assert factor("fgm") == 2
    assert factor({"fgm": {"clean": False}}) == third(5 / 3)
    assert factor("pgd") == third(2 + 2 * 2 / 3)
    assert factor({"pgd": {"steps": 1}}) == 2
    assert factor({"pgd": {"clean": False}}) == third(1 + 3 * 2 / 3)
    assert factor("freelb") == 3
    assert factor({"freelb": {"clean": True, "steps": 2}}) == 3
    assert {factor({name: {"epsilon": 0}}) for name in ("fgm", "pgd", "freelb")} == {1}


IDLE: list[Any] = [
    {"fgm": {"epsilon": 0}}, {"fgm": {"epsilon": 0, "clean": False, "target": "table"}}, {"pgd": {"epsilon": 0}},
    {"pgd": {"step_size": 0}}, {"freelb": {"epsilon": 0}}, {"freelb": {"epsilon": 0, "clean": True}},
]  # fmt: skip


def learned(run: Any, method: Any, *parts: range) -> tuple[float, Tensor]:
    """The loss of a step and all its gradients, with the method in place of what the run was made with."""
    run.methods = [] if method is None else [create_method(parse_method_use(method), seed=0)]
    torch.manual_seed(0)
    loss = float(forward_backward(run, [[run.objective.batch(np.array(part), run.device)] for part in parts]))
    found = torch.cat([p.grad.flatten() for p in run.model.parameters() if p.grad is not None])
    run.model.zero_grad()
    assert not torch.is_autocast_enabled("cpu")
    assert found.dtype == torch.float32
    assert found.isfinite().all()
    return float(loss), found


def test_without_a_perturbation_a_step_is_bit_for_bit_the_plain_one(toy: ToyStudy) -> None:
    run = prepared(toy, "runs", [])
    run.model.train()
    loss, plain = learned(run, None, range(5), range(5, 20))
    for method in IDLE:
        same, gradient = learned(run, method, range(5), range(5, 20))
        assert (same, torch.equal(gradient, plain)) == (loss, True), method
        use = parse_method_use(method)
        assert use.config.idle
        assert is_control([use], [parse_method_use(use.name)])


def test_accumulated_batches_give_the_gradients_of_the_whole(toy: ToyStudy) -> None:
    run = prepared(toy, "runs", [])
    run.model.eval()  # no dropout
    for name, method in ATTACKS.items():
        # the table's one norm is that of a batch, so its batches must be alike
        whole, parts = (range(20), [range(20)] * 2) if "table" in name else (range(20), [range(6), range(6, 20)])
        loss, gradient = learned(run, method, whole)
        same, summed = learned(run, method, *parts)
        assert same == pytest.approx(loss, rel=1e-5)
        torch.testing.assert_close(summed, gradient, atol=1e-6, rtol=1e-3, msg=name)


def test_bf16_gives_the_gradients_of_fp32_to_rounding(toy: ToyStudy) -> None:
    found = {}
    for precision in ("fp32", "bf16"):
        run = prepared(toy, precision, [], precision=precision)
        run.model.eval()  # no dropout
        found[precision] = {name: learned(run, method, range(20)) for name, method in ATTACKS.items()}
    for name in ATTACKS:
        (plain, exact), (short, rounded) = (found[precision][name] for precision in ("fp32", "bf16"))
        assert short != plain
        assert short == pytest.approx(plain, abs=0.01)
        torch.testing.assert_close(rounded, exact, atol=0.1 * float(exact.abs().max()), rtol=0, msg=name)


def test_the_loss_that_is_logged_is_the_clean_one_where_it_is_kept(toy: ToyStudy) -> None:
    run = prepared(toy, "runs", [])
    run.model.train()
    plain, gradient = learned(run, None, range(20))
    for name, method in ATTACKS.items():
        loss, more = learned(run, method, range(20))
        if parse_method_use(method).config.clean:  # type: ignore[attr-defined]
            assert loss == plain, f"{name}: the first pass is that of the baseline, its dropout too"
            assert more.norm() > 1.2 * gradient.norm(), f"{name}: two losses are summed"
        else:
            assert loss != plain, name


def test_a_map_of_bpsom_learns_once_a_batch_in_either_order(toy: ToyStudy) -> None:
    run = prepared(toy, "runs", [{"bpsom": SMALL}])
    (bpsom,), head = run.methods, active_head(run.model)
    assert head.som is not None
    updates: list[float] = []
    learn = head.som.update

    def update(*given: Any) -> None:
        updates.append(head.loss_scale)
        learn(*given)

    head.som.update = update  # type: ignore[assignment, method-assign]
    batches = [run.objective.batch(np.array(rows), run.device) for rows in (range(4), range(4, 16))]
    for method, first in itertools.product(ATTACKS.values(), (True, False)):
        attack = create_method(parse_method_use(method), seed=0)
        run.methods = [bpsom, attack] if first else [attack, bpsom]
        updates.clear()
        head.loss_scale, head._watches = 7.0, None  # as after a resumption: nothing is left of a step before
        forward_backward(run, [[batch] for batch in batches])
        assert updates == [0.25, 0.75], "once per batch, with the scale of the batch that is under way"


@pytest.mark.parametrize("methods", [
    ["orthogonal_qk", "fgm"], ["peft", "pgd"], ["freelb", "peft"], ["bitfit", "fgm"],
    [{"bpsom": SMALL}, "peft", {"fgm": {"clean": False}}], ["rdrop", "focal", "freelb"],
], ids=str)  # fmt: skip
def test_frozen_parts_stay_frozen_and_the_rest_learns(toy: ToyStudy, methods: list[Any]) -> None:
    run = prepared(toy, "runs", methods)
    before = {name: p.detach().clone() for name, p in run.model.named_parameters()}
    for _ in range(2):
        run.advance()
    moved = {name for name, p in run.model.named_parameters() if not torch.equal(p, before[name])}
    trained = {name for name, p in run.model.named_parameters() if p.requires_grad}
    assert moved
    assert moved <= trained
    hooked = [module for module in run.model.modules() if module._forward_hooks and isinstance(module, nn.Embedding)]
    assert hooked == []


def test_language_models(tmp_path: Path) -> None:
    """Gone through in halves, without holding all logits; their head is the table."""
    study, exact = study_of(make_model(tmp_path / "tiny-gpt"), tmp_path), {}
    for precision in ("fp32", "bf16"):
        job = job_of(study, tmp_path / precision, precision=precision)
        job.run.path.mkdir(parents=True)
        run = prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run
        run.model.eval()
        before = {key: weights.clone() for key, weights in run.model.state_dict().items()}
        _, plain = learned(run, None, range(4))
        for name, method in ATTACKS.items():
            _, gradient = learned(run, method, range(4))
            assert not torch.allclose(gradient, plain, rtol=1e-2), name
            assert all(torch.equal(weights, before[key]) for key, weights in run.model.state_dict().items())
            if precision == "fp32":
                exact[name] = gradient
            else:
                far = (gradient - exact[name]).norm() / exact[name].norm()
                assert 0 < far < 0.1, name
