"""layerwise_lr: the rates, every parameter in one group, what is refused, and that it trains as it says."""

# ruff: noqa: F811 - fixtures of another room are imported by their names
from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fairtune.core.errors import ModelError
from fairtune.ledger.records import read_records
from fairtune.methods.arms import named_arms
from fairtune.methods.layerwise_lr import LayerwiseLR, LayerwiseLRConfig, layerwise_groups
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.settings.sections import Train
from fairtune.study.yaml_tree import parse_yaml
from fairtune.training.optimizer import parameter_groups
from tests.execution.conftest import ToyStudy, digests, perform_here, toy  # noqa: F401 - a fixture
from tests.models.architectures import BUILDERS, build

SHORT: dict[str, Any] = {"steps": 4, "examples": 96, "eval_examples": 20, "evaluate": "epoch"}
PUBLISHED = {"decay": 0.95, "head_multiplier": 10.0}


def rates(model: nn.Module, groups: list[dict[str, Any]]) -> dict[str, float]:
    """The rate of each parameter by its name."""
    names = {id(p): name for name, p in model.named_parameters()}
    return {names[id(p)]: group["lr"] for group in groups for p in group["params"]}


@pytest.mark.parametrize("name", BUILDERS)
def test_every_parameter_is_in_exactly_one_group_and_decay_stays_as_it_was(name: str) -> None:
    model = build(name)
    method = LayerwiseLR(LayerwiseLRConfig(decay=0.9, head_multiplier=10))
    groups = parameter_groups(model, Train(lr=1e-3, weight_decay=0.3), [method])
    listed = [p for group in groups for p in group["params"]]
    assert len(listed) == len(set(map(id, listed))) == len(list(model.parameters()))
    for group in groups:
        assert all((p.ndim > 1) == (group["weight_decay"] == 0.3) for p in group["params"])
    alone = layerwise_groups(model, 1e-3, decay=0.9, head_multiplier=10, weight_decay=0.3)
    assert rates(model, alone) == rates(model, groups)
    torch.optim.AdamW(alone)


def test_golden_rates_of_bert() -> None:
    model = build("bert")
    found = rates(model, layerwise_groups(model, 2e-5, **PUBLISHED))
    golden = {
        "classifier.bias": 2e-4,
        "bert.pooler.dense.weight": 2e-5,
        "bert.encoder.layer.1.output.LayerNorm.bias": 2e-5,
        "bert.encoder.layer.0.attention.self.query.weight": 1.9e-5,
        "bert.embeddings.LayerNorm.weight": 1.805e-5,
        "bert.embeddings.position_embeddings.weight": 1.805e-5,
    }
    assert {name: found[name] for name in golden} == pytest.approx(golden)
    places = {group["name"]: group["lr"] for group in layerwise_groups(model, 2e-5, **PUBLISHED)}
    assert list(places) == ["above the layers", "layer 1", "layer 0", "embeddings", "head"]
    assert list(places.values()) == pytest.approx([2e-5, 2e-5, 1.9e-5, 1.805e-5, 2e-4])


PATTERNS = [{"match": "embeddings", "scale": 0.5}, {"match": "^classifier", "scale": 10}]


def test_patterns_and_the_one_that_the_message_proposes_for_the_rest() -> None:
    model = build("bert")
    with pytest.raises(ModelError, match=r"bert.encoder.layer.0.attention.* is in no group") as caught:
        layerwise_groups(model, 1.0, groups=PATTERNS)
    proposed = parse_yaml(str(caught.value).partition(", add ")[2].removesuffix(".")).data
    found = rates(model, layerwise_groups(model, 1.0, groups=[*PATTERNS, proposed]))
    assert (found["bert.embeddings.LayerNorm.bias"], found["classifier.weight"]) == (0.5, 10)
    assert found["bert.pooler.dense.bias"] == found["bert.encoder.layer.1.output.dense.weight"] == 1


@pytest.mark.parametrize(("groups", "expected"), [
    ([{"match": "bert", "scale": 1}, {"match": "weight", "scale": 2}, {"match": "classifier.bias", "scale": 1}],
     "bert.embeddings.word_embeddings.weight is in 'bert' and 'weight'"),
    ([{"match": "", "scale": 1}, {"match": "encodr", "scale": 2}], "'encodr' matches no parameter; the model has"),
])  # fmt: skip
def test_patterns_that_do_not_fit_are_refused_by_name(groups: list[dict[str, Any]], expected: str) -> None:
    with pytest.raises(ModelError, match=expected):
        layerwise_groups(build("bert"), 1.0, groups=groups)


def test_patterns_see_the_checkpoints_names_under_adapters() -> None:
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(build("bert"), peft.LoraConfig(task_type="SEQ_CLS", target_modules=["query"], r=2))
    patterns = [{"match": "^classifier", "scale": 10}, {"match": r"^bert.*lora_", "scale": 1}]
    found = rates(model, layerwise_groups(model, 1.0, groups=patterns))
    assert sorted(set(found.values())) == [1, 10]
    assert len(found) == 2 + 4


PARTS = [
    {"part": "embeddings", "lr": 2e-5},
    {"part": "lower", "lr": 2e-5},
    {"part": "upper", "lr": 3e-5},
    {"part": "head", "lr": 5e-5},
]


@pytest.mark.parametrize("name", BUILDERS)
def test_the_published_arm_has_its_rates_in_every_architecture_whatever_the_runs_rate(name: str) -> None:
    (use,) = named_arms()["layerwise-published"].uses
    assert use == parse_method_use({"layerwise_lr": {"groups": PARTS}})
    model = build(name)
    found = [
        rates(model, parameter_groups(model, Train(lr=lr), [create_method(use, 0)])) for lr in (1e-3, 7e-6)
    ]  # every trainable parameter once, or it raises
    assert found[0] == found[1]
    assert set(found[0].values()) <= {2e-5, 3e-5, 5e-5}
    assert found[0] == rates(model, layerwise_groups(model, 1.0, groups=PARTS))


def finished(job: Any) -> Any:
    result = perform_here(job)
    assert result["status"] == "finished", result.get("reason")
    return job.run


def test_one_rate_trains_bit_for_bit_as_without_and_others_are_recorded(toy: ToyStudy) -> None:
    plain = digests(finished(toy.job("plain", **SHORT)).path)
    idle = finished(toy.job("idle", [{"layerwise_lr": {"decay": 1, "head_multiplier": 1}}], **SHORT))
    assert digests(idle.path) == plain
    assert read_records(idle, "layerwise_lr") == []
    acting = finished(toy.job("acting", [{"layerwise_lr": PUBLISHED}], **SHORT))
    assert digests(acting.path) != plain
    (record,) = read_records(acting, "layerwise_lr")
    places = ["above the layers", "layer 1", "layer 0", "embeddings", "head"]
    assert (record.step, record.figures["places"]) == (1, places)
    assert (
        record.arrays["lr"].tolist() == record.figures["rates"] == pytest.approx([1e-3, 1e-3, 9.5e-4, 9.025e-4, 1e-2])
    )


PEFT: dict[str, Any] = {"peft": {"r": 2, "target_modules": ["query", "value"]}}
BPSOM: dict[str, Any] = {"bpsom": {"hidden": 12, "grid": [4, 3]}}


@pytest.mark.parametrize("others", [["bitfit"], ["orthogonal_qk"], [BPSOM], [PEFT], [BPSOM, PEFT], ["ema"]], ids=str)
@pytest.mark.parametrize("first", [True, False])
def test_the_rates_are_right_beside_other_methods_in_any_order(others: list[Any], first: bool) -> None:
    if PEFT in others:
        pytest.importorskip("peft")
    own = {"layerwise_lr": PUBLISHED}
    uses = [own, *others] if first else [*others, own]
    methods = [create_method(parse_method_use(use), 0) for use in uses]
    model: nn.Module = build("bert")
    for method in methods:
        model = method.prepare(model)
    groups = parameter_groups(model, Train(lr=1e-3), methods)
    found = rates(model, groups)
    assert set(found) == {name for name, p in model.named_parameters() if p.requires_grad}
    head = {rate for name, rate in found.items() if "classifier" in name or "bpsom" in name}
    assert head == {1e-2}
    assert {rate for name, rate in found.items() if "layer.0." in name} == {1e-3 * 0.95}
    assert {rate for name, rate in found.items() if "layer.1." in name} == {1e-3}
