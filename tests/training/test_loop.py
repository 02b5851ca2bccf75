"""The loop: what it does to gradients, rates and weights, what it selects, and that its noise is shared by all arms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from fairtune.ledger.events import counted_events
from fairtune.ledger.records import read_records
from fairtune.methods import registry
from fairtune.methods.base import Method, Moment
from fairtune.settings.sections import Train
from fairtune.training.optimizer import parameter_groups, schedule, set_learning_rate, step_clipped
from tests.execution.conftest import ToyStudy, digests, perform_here, toy  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow


def steps(job: Any) -> list[dict[str, Any]]:
    return [e for e in counted_events(job.run.events) if e["event"] == "step"]


def test_same_plan_and_seed_give_the_same_bits_and_another_seed_others(toy: ToyStudy) -> None:  # noqa: F811
    a, b, c = (toy.job(name, seed=seed, epochs=1) for name, seed in (("a", 0), ("b", 0), ("c", 1)))
    for job in (a, b, c):
        assert perform_here(job)["status"] == "finished"
    assert digests(a.run.path) == digests(b.run.path)
    assert digests(a.run.path)["model/model.safetensors"] != digests(c.run.path)["model/model.safetensors"]
    assert [e["tokens"] for e in steps(a)] != [e["tokens"] for e in steps(c)]


def test_all_arms_of_a_seed_share_order_head_and_dropout(toy: ToyStudy) -> None:  # noqa: F811
    kept_as_it_is, drawn = {"init": "keep", "freeze": False}, {"init": "normal", "std": 1.0}
    plain = toy.job("plain", epochs=1)
    kept = toy.job("kept", methods=[{"orthogonal_qk": kept_as_it_is}], epochs=1)
    random = toy.job("random", methods=[{"orthogonal_qk": drawn}], epochs=1)
    for job in (plain, kept, random):
        perform_here(job)
    assert digests(plain.run.path) == digests(kept.run.path), "a method that changes nothing changes no bit"
    assert [e["tokens"] for e in steps(plain)] == [e["tokens"] for e in steps(random)]
    assert steps(plain)[0]["loss"] != steps(random)[0]["loss"]


def test_nan_fails_the_run_and_names_the_step(toy: ToyStudy) -> None:  # noqa: F811
    result = perform_here(toy.job("runs", lr=1e30))
    assert result["status"] == "failed"
    assert "at step" in result["reason"]


def test_the_toy_task_is_learnt_and_the_best_validation_checkpoint_is_the_one_that_is_scored(
    toy: ToyStudy,  # noqa: F811
) -> None:
    toy.source["execution"]["checkpoint_every"] = "24h"
    job = toy.job("runs", epochs=8, lr=3e-3, batch_size=8, evaluate=10)
    result = perform_here(job)
    assert result["metrics"]["test"]["accuracy"] > 0.9
    found = [e for e in counted_events(job.run.events) if e["event"] == "evaluation" and e["split"] == "validation"]
    scores = {e["step"]: e["accuracy"] for e in found}
    best = max(scores.values())
    assert result["metrics"]["validation"]["accuracy"] == best
    assert result["best_step"] == min(step for step, score in scores.items() if score == best), "the first of equals"
    assert result["best_step"] < result["steps"], "this run must be one whose last checkpoint is not its best"


def test_early_stopping_waits_as_long_as_it_is_told(toy: ToyStudy) -> None:  # noqa: F811
    toy.source["execution"]["checkpoint_every"] = "24h"
    result = perform_here(toy.job("runs", epochs=30, lr=3e-3, batch_size=8, evaluate=25, patience=2))
    assert result["stopped_early"]
    assert result["steps"] == result["best_step"] + 2 * 25


def test_steps_replace_epochs_and_accumulation_counts_optimizer_steps(toy: ToyStudy) -> None:  # noqa: F811
    job = toy.job("runs", steps=7, accumulate=3, batch_size=4)
    result = perform_here(job)
    assert result["steps"] == 7 == len(steps(job))
    assert [e["examples"] for e in steps(job)] == [12] * 7


def test_times_are_kept_apart(toy: ToyStudy) -> None:  # noqa: F811
    job = toy.job("runs")
    result = perform_here(job)
    seconds = result["seconds"]
    parts = {"data", "step", "validation", "test", "checkpoint"}
    assert parts <= set(seconds)
    assert all(seconds[part] > 0 for part in parts)
    assert seconds["total"] == pytest.approx(sum(v for k, v in seconds.items() if k not in ("total", "epochs")))
    assert len(seconds["epochs"]) == 2
    assert sum(seconds["epochs"]) == pytest.approx(seconds["step"] + seconds["data"], rel=1e-6)
    assert result["step_seconds"]["n"] == 26


def test_the_schedule_warms_up_and_ends_at_zero() -> None:
    linear = Train(warmup=0.1, schedule="linear")
    assert [schedule(linear, s, 100) for s in (0, 5, 10, 55, 100)] == pytest.approx([0, 0.5, 1, 0.5, 0])
    cosine = Train(warmup=4, schedule="cosine")
    assert [schedule(cosine, s, 24) for s in (2, 4, 14, 24)] == pytest.approx([0.5, 1, 0.5, 0])
    assert schedule(Train(warmup=0, schedule="constant"), 0, 10) == 1


def test_weight_decay_spares_biases_and_normalisation_and_rates_scale_by_group() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Embedding(5, 4))
    groups = parameter_groups(model, Train(lr=0.2, weight_decay=0.3), [])
    decayed = {id(p) for p in groups[0]["params"]}
    assert decayed == {id(model[0].weight), id(model[2].weight)}
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0]
    optimizer = torch.optim.AdamW([{**g, "peak_lr": lr} for g, lr in zip(groups, (0.2, 0.4), strict=True)])
    set_learning_rate(optimizer, Train(lr=0.2, warmup=0), 5, 10)
    assert [g["lr"] for g in optimizer.param_groups] == pytest.approx([0.1, 0.2])


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("largest", [None, 10.0, 1.0])
def test_clipping_scales_only_what_is_too_long(fused: bool, largest: float | None) -> None:
    def stepped(gradient: Tensor, limit: float | None) -> Tensor:
        parameter = torch.nn.Parameter(torch.zeros(4))
        optimizer = torch.optim.AdamW([parameter], lr=0.1, eps=1.0, weight_decay=0.0, fused=fused)
        parameter.grad = gradient.clone()
        norm = torch.nn.utils.get_total_norm([parameter.grad])
        assert float(norm) == pytest.approx(float(gradient.norm()))
        step_clipped(optimizer, [parameter], norm, limit)
        assert not hasattr(optimizer, "grad_scale"), "the next step starts afresh"
        return parameter.detach()

    gradient = torch.tensor([3.0, 4.0, 0.0, 0.0])
    expected = stepped(gradient / 5 if largest == 1.0 else gradient, None)
    torch.testing.assert_close(stepped(gradient, largest), expected, atol=1e-6, rtol=1e-5)


class SpyConfig(registry.MethodConfig):
    """A method that uses every hook, to prove that each is called."""


class Spy(Method):
    """Doubles the head's rate, triples the loss, learns twice from each batch, evaluates with a zeroed head."""

    name, config_class = "spy", SpyConfig
    excludes = frozenset({"loss"})
    calls: list[str]

    def prepare(self, model: torch.nn.Module) -> torch.nn.Module:
        self.calls = ["prepare"]
        self.seen = 0
        return model

    def param_groups(self, groups: Any, model: Any) -> Any:
        self.calls.append("param_groups")
        head = {id(p) for p in model.classifier.parameters()}
        rest = [{**g, "params": [p for p in g["params"] if id(p) not in head]} for g in groups]
        return [*rest, {"params": list(model.classifier.parameters()), "lr": 2 * groups[0]["lr"], "weight_decay": 0.0}]

    def loss(self, outputs: Any, batch: Any) -> Any:
        return 3 * torch.nn.functional.cross_entropy(outputs.logits, batch["labels"])

    def around_backward(self, step: Any, proceed: Any) -> Any:
        where = (step.step, step.total_steps, step.epoch, step.epochs, step.scale)
        assert where == (self.seen, 26, self.seen // 13, 2, 1.0), where
        loss = proceed()
        step.backward(step.forward())
        return loss

    def after_step(self, moment: Moment) -> None:
        self.seen += 1
        assert moment.step == self.seen

    def after_epoch(self, moment: Moment) -> None:
        assert sum(len(batch["labels"]) for batch in moment.train_batches()) == 200
        self.calls.append(f"epoch {moment.epoch}")
        moment.record("spied", {"seen": torch.tensor([self.seen])}, calls=len(self.calls))
        moment.warn(f"epoch {moment.epoch} was spied on")

    @contextmanager
    def evaluating(self, model: Any) -> Iterator[None]:
        weight = model.classifier.weight
        kept = weight.detach().clone()
        with torch.no_grad():
            weight.zero_()
        yield
        with torch.no_grad():
            weight.copy_(kept)

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen, "calls": self.calls, "tensor": torch.tensor([float(self.seen)])}

    def load_state_dict(self, state: Any, model: Any) -> None:  # noqa: ARG002
        self.seen, self.calls = state["seen"], [*state["calls"], "loaded"]
        assert float(state["tensor"]) == self.seen


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.registered()
    monkeypatch.setitem(registry._registered, "spy", Spy)


@pytest.mark.usefixtures("spy")
def test_every_hook_of_a_method_takes_part(toy: ToyStudy) -> None:  # noqa: F811
    plain, spied = toy.job("plain"), toy.job("spied", methods=["spy"])
    perform_here(plain)
    result = perform_here(spied)
    assert result["status"] == "finished", result
    ours, theirs = steps(spied)[0], steps(plain)[0]
    assert ours["loss"] == pytest.approx(3 * theirs["loss"], rel=1e-5)
    assert ours["grad_norm"] > 4 * theirs["grad_norm"], "three times the loss, two passes"
    assert result["metrics"]["test"]["mcc"] == 0, "evaluated with the head that `evaluating` put in place"
    assert json.loads(spied.run.card.read_text())["changed"] == []
    records = read_records(spied.run, "spied")
    assert [(r.step, r.epoch, r.arrays["seen"].tolist()) for r in records] == [(13, 1, [13]), (26, 2, [26])]
    assert [r.figures for r in records] == [{"calls": 3}, {"calls": 4}]
    warned = [e["text"] for e in counted_events(spied.run.events) if e["event"] == "warning"]
    assert warned == ["epoch 1 was spied on", "epoch 2 was spied on"]


class Scaled(Method):
    """Notes what each loss is multiplied by."""

    name, config_class = "spy", SpyConfig
    seen: ClassVar[list[tuple[int, float, int]]] = []

    def around_backward(self, step: Any, proceed: Any) -> Any:
        self.seen.append((step.step, step.scale, len(step.batch["labels"])))
        return proceed()


def test_the_scale_of_a_loss_is_its_share_of_the_optimizer_step(
    toy: ToyStudy,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry.registered()
    monkeypatch.setitem(registry._registered, "spy", Scaled)
    job = toy.job("accumulated", methods=["spy"], accumulate=4, steps=4)
    assert perform_here(job)["status"] == "finished"
    assert sorted(n for _, _, n in Scaled.seen) == [8, *[16] * 12]
    for number in range(4):
        examples = sum(n for step, _, n in Scaled.seen if step == number)
        assert all(scale == n / examples for step, scale, n in Scaled.seen if step == number)


@pytest.mark.usefixtures("spy")
def test_a_method_that_loses_a_parameter_fails_the_run(toy: ToyStudy, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(Spy, "param_groups", lambda _self, groups, _model: groups[:1])
    result = perform_here(toy.job("runs", methods=["spy"]))
    assert result["status"] == "failed"
    assert "every trainable parameter exactly once" in result["reason"]


def test_a_device_that_is_not_there_is_not_replaced_in_silence(toy: ToyStudy) -> None:  # noqa: F811
    from fairtune.execution.run import perform_run

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    job = toy.job("runs")
    result = perform_run(job, "cuda:0", lambda: None, lambda _: None)
    assert result["status"] == "failed"
    assert "no device cuda:0" in result["reason"]


def test_bf16_trains_on_a_cpu_and_fp16_is_refused(toy: ToyStudy) -> None:  # noqa: F811
    job = toy.job("bf16", precision="bf16", steps=3)
    assert perform_here(job)["status"] == "finished"
    plain = toy.job("fp32", steps=3)
    perform_here(plain)
    assert steps(job)[0]["loss"] != steps(plain)[0]["loss"]
    assert steps(job)[0]["loss"] == pytest.approx(steps(plain)[0]["loss"], abs=0.02)
    refused = perform_here(toy.job("fp16", precision="fp16", steps=3))
    assert "fp16 needs a GPU" in refused["reason"]


def test_runs_that_take_turns_in_one_process_end_with_the_bits_they_have_alone(toy: ToyStudy) -> None:  # noqa: F811
    from fairtune.execution.prepare import prepare_run
    from fairtune.ledger.events import EventLog

    def ready(name: str, methods: list[Any]) -> Any:
        job = toy.job(name, methods, steps=10)
        job.run.path.mkdir(parents=True)
        return prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run

    def weights(run: Any) -> list[torch.Tensor]:
        return [p.detach().clone() for p in run.model.parameters()]

    arms: list[list[Any]] = [[], ["orthogonal_qk"]]
    alone = []
    for number, methods in enumerate(arms):
        run = ready(f"alone-{number}", methods)
        while not run.done:
            run.advance()
        alone.append(weights(run))
    together = [ready(f"together-{number}", methods) for number, methods in enumerate(arms)]
    while not all(run.done for run in together):
        for run in together:
            if not run.done:
                run.advance()
    for one, run in zip(alone, together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, weights(run), strict=True))
