"""ema: the average itself, who sees it and who does not, saving and resuming, and pruning beneath it."""

# ruff: noqa: F811 - fixtures of another room are imported by their names
from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from fairtune.core.errors import FairtuneError, ModelError
from fairtune.ledger.events import EventLog
from fairtune.ledger.records import read_records
from fairtune.methods.base import Moment
from fairtune.methods.bpsom.head import BPSOMHead
from fairtune.methods.bpsom.model import active_head
from fairtune.methods.bpsom.pruning import prune
from fairtune.methods.ema import EMAConfig
from fairtune.methods.ema import EMA, AveragedWeights
from fairtune.methods.registry import is_control, parse_method_use
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml
from tests.documented import examples, run_python
from tests.execution.conftest import ToyStudy, digests, perform_here, toy  # noqa: F401 - a fixture
from tests.execution.made_texts import job_of, make_model, study_of
from tests.models.architectures import build

SHORT: dict[str, Any] = {"steps": 8, "examples": 64, "eval_examples": 20, "evaluate": 4}
PRUNING: dict[str, Any] = {"bpsom": {"hidden": 16, "grid": [4, 3], "reliability": 0.5, "relabel": 3, "prune": 5e-4}}
PYTHON, STUDIES = examples("ema.md", "python"), examples("ema.md", "yaml")


def made() -> nn.Linear:
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.zero_(), layer.bias.zero_()
    return layer


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(value, b[name]) for name, value in a.items())


# -- the average -------------------------------------------------------------------------------------------------------


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


def test_after_the_warm_up_the_decay_is_the_one_asked_for() -> None:
    layer = made()
    ema = EMA(layer, 0.9)
    ema.updates = 1000
    nn.init.ones_(layer.bias)
    ema.update()
    assert float(ema.averages["bias"]) == pytest.approx(0.1)


def test_decay_0_is_the_raw_weights_bit_for_bit() -> None:
    model = build("bert")
    ema = EMA(model, 0.0)
    for parameter in model.parameters():
        parameter.data += torch.randn_like(parameter)
    ema.update()
    raw = weights(model)
    with ema.averaged():
        assert same(weights(model), raw)


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


@pytest.mark.parametrize("decay", [-0.1, 1.0, 2])
def test_a_decay_that_is_none_is_refused(decay: float) -> None:
    with pytest.raises(FairtuneError, match="EMA: decay is"):
        EMA(made(), decay)
    arms = {"baseline": {}, "x": {"methods": [{"ema": {"decay": decay}}]}}
    with pytest.raises(StudyError, match=r"ema\.decay: found"):
        load_study({"study": "s", "task": "sst2", "model": "minilm", "arms": arms})


def test_decay_0_is_idle_and_the_control() -> None:
    idle, acting = parse_method_use({"ema": {"decay": 0}}), parse_method_use("ema")
    assert idle.config.idle
    assert is_control([idle], [acting])
    assert not is_control([acting], [idle])
    assert acting.config == EMAConfig(decay=0.999)


def test_a_step_that_was_skipped_does_not_count() -> None:
    model = made()
    method = AveragedWeights(EMAConfig())
    method.param_groups([], model)
    for skipped in (False, True, False):
        moment = SimpleNamespace(optimizer=SimpleNamespace(step_was_skipped=skipped))
        method.after_step(cast(Moment, moment))
    assert method.state_dict()["updates"] == 2


# -- in runs -----------------------------------------------------------------------------------------------------------


def ready(toy: ToyStudy, name: str, methods: list[Any], **train: Any) -> Any:
    from fairtune.execution.run import prepare_run

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
            parameter.copy_(method.copies()[name])
    by_hand = plain.objective.evaluate(plain.model, "validation", plain.device, [], lambda: None)
    assert (found.arrays["scores"] == by_hand.arrays["scores"]).all()

    while not averaged.done:
        averaged.advance()
    saved = load_file(averaged.states._best(averaged.progress.best_step) / "model.safetensors")
    assert same(weights(averaged.model), saved)
    assert all(torch.equal(saved[name], average) for name, average in method.copies().items())
    again = averaged.objective.evaluate(averaged.model, "test", averaged.device, [], lambda: None)
    assert (again.arrays["scores"] == averaged.scores["test"].arrays["scores"]).all(), (
        "the test split, with the averages"
    )


def test_decay_0_trains_and_scores_bit_for_bit_as_without(toy: ToyStudy) -> None:
    plain, idle = toy.job("plain", **SHORT), toy.job("idle", [{"ema": {"decay": 0}}], **SHORT)
    for job in (plain, idle):
        assert perform_here(job)["status"] == "finished"
    assert digests(plain.run.path) == digests(idle.run.path)


def test_a_language_model_with_tied_embeddings_is_stopped_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    from fairtune.core.errors import Stopped

    study = study_of(make_model(tmp_path / "tiny-gpt"), tmp_path, steps=6, evaluate=3)
    methods = [{"layerwise_lr": {"decay": 0.5}}, {"ema": {"decay": 0.9}}]
    whole, broken = (job_of(study, tmp_path / name, methods) for name in ("whole", "broken"))
    looks = iter(range(1000))

    def check_stop() -> None:
        if next(looks) == 6:
            raise Stopped

    assert perform_here(whole)["status"] == "finished"
    with pytest.raises(Stopped):
        perform_here(broken, check_stop)
    assert any(broken.run.checkpoint.glob("step-*")), "stopped in the middle of training"
    assert perform_here(broken)["status"] == "finished"
    assert digests(broken.run.path) == digests(whole.run.path)
    (record,) = read_records(whole.run, "layerwise_lr")
    assert "head" not in record.figures["places"], "it is tied to the embeddings"


# -- pruning beneath it ------------------------------------------------------------------------------------------------


def test_a_copy_is_pruned_by_its_own_weights() -> None:
    head = BPSOMHead(6, 3, hidden=8, grid=3)
    keep, mean = torch.arange(8) % 3 > 0, torch.linspace(0.1, 0.8, 8)
    copy = {name: torch.randn_like(p) for name, p in head.named_parameters()}
    before, objects = {name: value.clone() for name, value in copy.items()}, dict(copy)
    only_bias = {"out.bias": torch.zeros(3)}
    weight = head.out.weight.detach().clone()
    prune(head, keep, mean, None, [copy, only_bias])
    assert all(copy[name] is value for name, value in objects.items()), "who keeps it goes on with it"
    assert torch.equal(copy["hidden.weight"], before["hidden.weight"][keep])
    assert torch.equal(copy["hidden.bias"], before["hidden.bias"][keep])
    assert torch.equal(copy["out.weight"], before["out.weight"][:, keep])
    torch.testing.assert_close(copy["out.bias"], before["out.bias"] + before["out.weight"][:, ~keep] @ mean[~keep])
    torch.testing.assert_close(only_bias["out.bias"], weight[:, ~keep] @ mean[~keep])


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
    shapes = {name: p.shape for name, p in broken.model.named_parameters()}
    assert {name: average.shape for name, average in ema.copies().items()} == shapes
    broken.save()
    resumed = ready(toy, "broken", methods)
    assert resumed.progress.step == 5
    again = next(method for method in resumed.methods if isinstance(method, AveragedWeights))
    assert same(again.copies(), ema.copies())
    while not resumed.done:
        resumed.advance()
    assert same(weights(resumed.model), weights(whole.model))
    assert (resumed.scores["test"].arrays["scores"] == whole.scores["test"].arrays["scores"]).all()


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_arms_of_the_page_can_be_read() -> None:
    study = load_study(parse_yaml(STUDIES["In a study"]).data)
    assert [use.config for use in study.methods("shorter")] == [EMAConfig(decay=0.99)]


@pytest.mark.parametrize("heading", PYTHON)
def test_the_examples_run(
    heading: str, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = {"google-bert/bert-base-uncased": tiny_model, "minilm": tiny_model}
    names = run_python(PYTHON[heading], folders, f"docs/ema.md: {heading}")
    model, ema = names["model"], names["ema"]
    assert not all(torch.equal(p, ema.averages[name]) for name, p in model.named_parameters())
    if heading == "Cost":
        assert "ema.update(): median" in capsys.readouterr().out
        return
    assert ema.updates == 3
    saved = type(model).from_pretrained("my-model")
    assert all(torch.equal(p, ema.averages[name]) for name, p in saved.named_parameters())
