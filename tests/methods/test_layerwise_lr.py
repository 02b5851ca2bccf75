"""layerwise_lr: the rates, every parameter in one group, what is refused, and that it trains as it says."""

# ruff: noqa: F811 - fixtures of another room are imported by their names
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from fairtune.core.errors import FairtuneError, ModelError
from fairtune.ledger.records import read_records
from fairtune.methods.arms import named_arms
from fairtune.methods.layerwise_lr import LayerwiseLRConfig
from fairtune.methods.layerwise_lr import LayerwiseLR, describe_rates, layerwise_groups
from fairtune.methods.registry import create_method, is_control, parse_method_use
from fairtune.settings.sections import Train
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml
from fairtune.training.optimizer import parameter_groups
from tests.documented import examples, run_python
from tests.execution.conftest import ToyStudy, digests, perform_here, toy  # noqa: F401 - a fixture
from tests.models.architectures import BUILDERS, build

SHORT: dict[str, Any] = {"steps": 4, "examples": 96, "eval_examples": 20, "evaluate": "epoch"}
PUBLISHED = {"decay": 0.95, "head_multiplier": 10.0}
PYTHON, STUDIES = examples("layerwise_lr.md", "python"), examples("layerwise_lr.md", "yaml")


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
    rows = describe_rates(model, 2e-5, **PUBLISHED)
    assert [row.place for row in rows] == ["above the layers", "layer 1", "layer 0", "embeddings", "head"]
    assert [row.lr for row in rows] == pytest.approx([2e-5, 2e-5, 1.9e-5, 1.805e-5, 2e-4])
    assert sum(row.parameters for row in rows) == sum(p.numel() for p in model.parameters())
    assert sum(row.tensors for row in rows) == len(list(model.parameters()))


def test_what_is_tied_is_of_the_embeddings_and_what_is_not_is_of_the_head() -> None:
    tied, own = build("gpt2"), build("gpt-neox")
    assert [row.place for row in describe_rates(tied, 1.0)] == ["above the layers", "layer 1", "layer 0", "embeddings"]
    assert rates(own, layerwise_groups(own, 1.0, head_multiplier=3.0))["lm_head.weight"] == 3.0


def test_frozen_parameters_have_no_group() -> None:
    model = build("bert")
    create_method(parse_method_use("bitfit"), 0).prepare(model)
    found = rates(model, layerwise_groups(model, 1.0))
    assert set(found) == {name for name, p in model.named_parameters() if p.requires_grad}
    assert found["bert.encoder.layer.0.output.dense.bias"] == 0.95


def test_groups_of_another_method_keep_what_they_say() -> None:
    model = build("bert")
    slow = {"params": list(model.bert.embeddings.parameters()), "lr": 0.5, "weight_decay": 0.0, "betas": (0.5, 0.5)}
    rest = {"params": [p for n, p in model.named_parameters() if "embeddings" not in n], "lr": 1.0, "weight_decay": 0.1}
    groups = LayerwiseLR(LayerwiseLRConfig(decay=0.5)).param_groups([slow, rest], model)
    (found,) = [group for group in groups if "betas" in group]
    assert (found["lr"], len(found["params"])) == (0.125, 5)


# -- patterns ----------------------------------------------------------------------------------------------------------

PATTERNS = [{"match": "embeddings", "scale": 0.5}, {"match": "^classifier", "scale": 10}]


def test_patterns_and_the_one_that_the_message_proposes_for_the_rest() -> None:
    model = build("bert")
    with pytest.raises(
        ModelError, match=r"no group in `groups` covers bert.encoder.layer.0.attention.*and 31 more"
    ) as caught:
        layerwise_groups(model, 1.0, groups=PATTERNS)
    proposed = parse_yaml(str(caught.value).partition(", add ")[2].removesuffix(".")).data
    found = rates(model, layerwise_groups(model, 1.0, groups=[*PATTERNS, proposed]))
    assert (found["bert.embeddings.LayerNorm.bias"], found["classifier.weight"]) == (0.5, 10)
    assert found["bert.pooler.dense.bias"] == found["bert.encoder.layer.1.output.dense.weight"] == 1


@pytest.mark.parametrize(("groups", "expected"), [
    ([{"match": "bert", "scale": 1}, {"match": "weight", "scale": 2}, {"match": "classifier.bias", "scale": 1}],
     "more than one group of `groups` has bert.embeddings.word_embeddings.weight.*'bert' and 'weight'"),
    ([{"match": "", "scale": 1}, {"match": "encodr", "scale": 2}], "'encodr' of `groups` matches no parameter; the model has"),
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


# -- parts, and rates that do not depend on the run's -------------------------------------------------------------------

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


def test_the_published_groups_of_bert_halve_the_layers_and_leave_nothing_out() -> None:
    for layers, middle in ((12, 6), (6, 3), (5, 2)):
        config = BertConfig(
            vocab_size=9, hidden_size=8, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=8
        )
        model = BertForSequenceClassification(config)
        found = rates(model, layerwise_groups(model, 1.0, groups=PARTS))
        for number in range(layers):
            own = {rate for name, rate in found.items() if f"layer.{number}." in name}
            assert own == {2e-5 if number < middle else 3e-5}
        assert found["bert.embeddings.LayerNorm.weight"] == 2e-5
        assert found["bert.pooler.dense.weight"] == found["classifier.weight"] == 5e-5


def test_parts_and_patterns_mix_as_long_as_each_parameter_is_in_one_group() -> None:
    model = build("bert")
    mixed = [
        {"part": "embeddings", "lr": 1e-5},
        {"match": "encoder|pooler", "scale": 2},
        {"match": "^classifier", "lr": 5e-5},
    ]
    assert set(rates(model, layerwise_groups(model, 1.0, groups=mixed)).values()) == {1e-5, 2, 5e-5}
    with pytest.raises(ModelError, match="more than one group"):
        layerwise_groups(model, 1.0, groups=[*PARTS, {"match": "pooler", "lr": 1e-5}])
    with pytest.raises(ModelError, match="add embeddings, upper, head"):
        layerwise_groups(model, 1.0, groups=[{"part": "lower", "lr": 1e-5}])


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("settings", "expected"), [
    ({"decay": 0}, r"arms.x.methods\[0\].layerwise_lr.decay: found 0; allowed"),
    ({"decay": 1.1}, "decay: found 1.1"),
    ({"decay": "0.95"}, "decay: found '0.95'"),
    ({"head_multiplier": 0}, "head_multiplier: found 0"),
    ({"head_multiplier": -1}, "head_multiplier: found -1"),
    ({"groups": []}, "groups: is empty"),
    ({"groups": [{"match": "a"}]}, r"groups\[0\]: give exactly one of lr .* and scale"),
    ({"groups": [{"match": "a", "lr": 1e-5, "scale": 1}]}, r"groups\[0\]: give exactly one of lr .* and scale"),
    ({"groups": [{"match": "a", "part": "head", "lr": 1e-5}]}, r"groups\[0\]: give exactly one of match .* and part"),
    ({"groups": [{"part": "middle", "lr": 1e-5}]}, r"groups\[0\].part: found 'middle'"),
    ({"groups": [{"match": "a", "lr": 0.5}]}, r"groups\[0\].lr: .*write scale: 0.5"),
    ({"groups": [{"match": "(", "scale": 1}]}, r"'\(' is not a regular expression: missing \)"),
    ({"groups": [{"match": "a", "lr": 0}]}, r"groups\[0\].lr: found 0"),
    ({"groups": [{"match": "a", "scale": 1}], "decay": 0.95}, "groups is given together with decay"),
    ({"groups": [{"match": "a", "scale": 1}], "decay": 1, "head_multiplier": 2}, "together with decay and head_multiplier"),
    ({"deca": 0.9}, "deca: unknown key.*Did you mean 'decay'"),
])  # fmt: skip
def test_impossible_settings_are_refused_when_the_study_is_read(settings: dict[str, Any], expected: str) -> None:
    arms = {"baseline": {}, "x": {"methods": [{"layerwise_lr": settings}]}}
    with pytest.raises(StudyError, match=expected):
        load_study({"study": "s", "task": "sst2", "model": "minilm", "arms": arms})


def test_alone_impossible_settings_are_reported_too() -> None:
    with pytest.raises(FairtuneError, match="layerwise_groups: decay: "):
        layerwise_groups(build("bert"), 1.0, decay=2.0)
    with pytest.raises(ModelError, match=r"Linear holds 0 transformers models.*Give `groups`"):
        layerwise_groups(nn.Linear(2, 2), 1.0)


@pytest.mark.parametrize(
    "settings", [{}, {"decay": 0.9, "head_multiplier": 2.0}, {"groups": PATTERNS}, {"groups": PARTS}]
)
def test_what_is_written_down_can_be_read_again(settings: dict[str, Any]) -> None:
    use = parse_method_use({"layerwise_lr": settings})
    again = parse_method_use(use.as_json())
    assert again == use
    assert again.as_json() == use.as_json()


def test_one_rate_is_idle_and_the_control_of_many() -> None:
    idle = [parse_method_use({"layerwise_lr": {"decay": 1.0}})]
    for settings in ({"groups": [{"match": "", "scale": 1}]}, {"decay": 1}):
        assert parse_method_use({"layerwise_lr": settings}).config.idle
    for settings in ({}, {"decay": 1, "head_multiplier": 2}, {"groups": PATTERNS}, {"groups": PARTS}):
        acting = parse_method_use({"layerwise_lr": settings})
        assert not acting.config.idle
        assert is_control(idle, [acting])
    assert LayerwiseLRConfig().step_factor == 1


# -- in runs and beside other methods ----------------------------------------------------------------------------------


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


def test_one_rate_by_patterns_leaves_the_groups_as_they_are() -> None:
    model = build("bert")
    groups = parameter_groups(model, Train(), [])
    idle = LayerwiseLR(LayerwiseLRConfig.model_validate({"groups": [{"match": "", "scale": 1}]}))
    assert idle.param_groups(groups, model) is groups


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


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_arms_of_the_page_have_the_rates_that_it_says() -> None:
    study, model = load_study(parse_yaml(STUDIES["In a study"]).data), build("bert")
    expected = {
        "decay": (1.805e-5, 2e-5, 2e-4),
        "layerwise-published": (2e-5, 5e-5, 5e-5),
        "by-name": (1e-5, 2e-5, 2e-4),
    }
    assert list(study.arms) == ["baseline", *expected]
    for arm, golden in expected.items():
        methods = [create_method(use, 0) for use in study.methods(arm)]
        found = rates(model, parameter_groups(model, Train(lr=2e-5), methods))
        names = ("bert.embeddings.LayerNorm.weight", "bert.pooler.dense.weight", "classifier.weight")
        assert [found[name] for name in names] == pytest.approx(golden)


@pytest.mark.parametrize("heading", PYTHON)
def test_the_examples_run(
    heading: str, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_python(
        PYTHON[heading], {"google-bert/bert-base-uncased": tiny_model}, f"docs/layerwise_lr.md: {heading}"
    )
    listed = sum(len(group["params"]) for group in names["optimizer"].param_groups)
    assert listed == len(list(names["model"].parameters()))
    if heading == "In your own loop":
        assert "embeddings       1.81e-05" in capsys.readouterr().out
