"""ema: the average itself, who sees it and who does not, saving and resuming, and pruning beneath it."""

# ruff: noqa: F811 - fixtures of another room are imported by their names
from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from fairtune.core.errors import FairtuneError, ModelError
from fairtune.ledger.events import EventLog
from fairtune.methods.base import Moment
from fairtune.methods.bpsom.model import active_head
from fairtune.methods.ema import EMA, AveragedWeights, EMAConfig
from tests.execution.conftest import ToyStudy, digests, perform_here, toy  # noqa: F401 - a fixture
from tests.models.architectures import build

SHORT: dict[str, Any] = {"steps": 8, "examples": 64, "eval_examples": 20, "evaluate": 4}
PRUNING: dict[str, Any] = {"bpsom": {"hidden": 16, "grid": [4, 3], "reliability": 0.5, "relabel": 3, "prune": 5e-4}}


def made() -> nn.Linear:
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.zero_(), layer.bias.zero_()
    return layer


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(value, b[name]) for name, value in a.items())


@pytest.mark.parametrize(("decay", "expected"), [(0.999, [9 / 11, 9 / 11 * 3 / 12 + 2 * 9 / 12]), (0.1, [0.9, 1.89])])
def test_golden_averages_with_their_warm_up(decay: float, expected: list[float]) -> None:
    layer = made()
    ema = EMA(layer, decay)
    for step, average in enumerate(expected, start=1):
        nn.init.constant_(layer.bias, step)
        ema.update()
        assert float(ema.averages["bias"]) == pytest.approx(average)
    assert ema.updates == 2
    assert float(ema.averages["weight"].abs().max()) == 0


def test_the_model_has_the_averages_for_a_while_and_then_its_own_bits_again() -> None:
    model = build("gpt2")  # its head is tied to its embeddings
    ema = EMA(model)
    for parameter in model.parameters():
        parameter.data += torch.randn_like(parameter)
    ema.update()
    raw, stores = weights(model), [p.data_ptr() for p in model.parameters()]
    with ema.averaged(), ema.averaged():
        inside = weights(model)
        assert model.lm_head.weight is model.transformer.wte.weight
        with pytest.raises(FairtuneError, match=r"update\(\) inside averaged\(\)"):
            ema.update()
    assert all(torch.equal(inside[name], average) for name, average in ema.averages.items())
    assert not same(inside, raw)

    def failing() -> None:
        with ema.averaged():
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert same(weights(model), raw)
    assert [p.data_ptr() for p in model.parameters()] == stores, "nothing was copied"


def test_frozen_parameters_are_not_copied_and_16_bits_are_averaged_in_32() -> None:
    model = nn.Sequential(made(), made()).to(torch.bfloat16)
    model[0].requires_grad_(False)
    ema = EMA(model, 0.999)
    ema.updates = 100_000
    assert list(ema.averages) == ["1.weight", "1.bias"]
    nn.init.ones_(model[1].bias)
    for _ in range(3):
        ema.update()
    assert float(ema.averages["1.bias"]) == pytest.approx(1 - 0.999**3, rel=1e-4), (
        "bf16 would have stayed near one step"
    )
    with ema.averaged():
        assert model[1].bias.dtype == torch.bfloat16


def test_a_saved_average_goes_on_and_another_models_is_refused() -> None:
    one, other = made(), made()
    a, b = EMA(one, 0.9), EMA(other, 0.9)
    nn.init.ones_(one.bias)
    a.update()
    b.load_state_dict(
        {name: value.clone() if isinstance(value, Tensor) else value for name, value in a.state_dict().items()}
    )
    nn.init.constant_(one.bias, 3.0), nn.init.constant_(other.bias, 3.0)
    a.update(), b.update()
    assert same(a.averages, b.averages)
    assert a.updates == b.updates == 2
    with pytest.raises(ModelError, match=r"not of this model's trainable parameters \(0.bias"):
        EMA(nn.Sequential(made())).load_state_dict(a.state_dict())


def test_a_step_that_was_skipped_does_not_count() -> None:
    model = made()
    method = AveragedWeights(EMAConfig())
    method.param_groups([], model)
    for skipped in (False, True, False):
        moment = SimpleNamespace(optimizer=SimpleNamespace(step_was_skipped=skipped))
        method.after_step(cast(Moment, moment))
    assert method.state_dict()["updates"] == 2


def ready(toy: ToyStudy, name: str, methods: list[Any], **train: Any) -> Any:
    from fairtune.execution.prepare import prepare_run

    job = toy.job(name, methods, **{**SHORT, **train})
    job.run.path.mkdir(parents=True, exist_ok=True)
    return prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run


def test_training_never_sees_the_averages_and_all_that_is_scored_does(toy: ToyStudy) -> None:
    plain, averaged = ready(toy, "plain", []), ready(toy, "ema", ["ema"])
    (method,) = averaged.methods
    for run in (plain, averaged):
        while run.progress.step < 8:
            run.advance()
    assert same(weights(plain.model), weights(averaged.model)), "the same training"

    found = averaged.objective.evaluate(averaged.model, "validation", averaged.device, averaged.methods, lambda: None)
    assert same(weights(plain.model), weights(averaged.model)), "the raw weights are back"
    with torch.no_grad():
        for name, parameter in plain.model.named_parameters():
            parameter.copy_(method.state_dict()[f"average.{name}"])
    by_hand = plain.objective.evaluate(plain.model, "validation", plain.device, [], lambda: None)
    assert (found.arrays["scores"] == by_hand.arrays["scores"]).all()

    while not averaged.done:
        averaged.advance()
    saved = load_file(averaged.states._best(averaged.progress.best_step) / "model.safetensors")
    assert same(weights(averaged.model), saved)
    assert all(torch.equal(saved[name], method.state_dict()[f"average.{name}"]) for name in weights(plain.model))
    again = averaged.objective.evaluate(averaged.model, "test", averaged.device, [], lambda: None)
    assert (again.arrays["scores"] == averaged.scores["test"].arrays["scores"]).all(), (
        "the test split, with the averages"
    )


@pytest.mark.parametrize("methods", [["ema", PRUNING], [PRUNING, "ema"]], ids=["ema first", "bpsom first"])
def test_pruned_and_resumed_after_it_averages_end_with_the_same_bits(toy: ToyStudy, methods: list[Any]) -> None:
    whole = ready(toy, "whole", methods)
    while not whole.done:
        whole.advance()
    broken = ready(toy, "broken", methods)
    while broken.progress.step < 5:
        broken.advance()
    left = active_head(broken.model).units
    assert 1 <= left < 16, "units were pruned before it is saved"
    ema = next(method for method in broken.methods if isinstance(method, AveragedWeights))
    averages = ema.state_dict()
    assert all(averages[f"average.{name}"].shape == p.shape for name, p in broken.model.named_parameters())
    broken.save()
    resumed = ready(toy, "broken", methods)
    assert resumed.progress.step == 5
    again = next(method for method in resumed.methods if isinstance(method, AveragedWeights))
    updates, kept = again.state_dict(), dict(averages)
    assert updates.pop("updates") == kept.pop("updates")
    assert same(updates, kept)
    while not resumed.done:
        resumed.advance()
    assert same(weights(resumed.model), weights(whole.model))
    assert (resumed.scores["test"].arrays["scores"] == whole.scores["test"].arrays["scores"]).all()
