"""layerwise_lr: the rates, every parameter in one group, what is refused, and that it trains as it says."""

# ruff: noqa: F811 - fixtures of another room are imported by their names
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fairtune.core.errors import FairtuneError, ModelError
from fairtune.ledger.records import read_records
from fairtune.methods.layerwise_lr import LayerwiseLRConfig
from fairtune.methods.layerwise_lr.method import LayerwiseLR, describe_rates, layerwise_groups
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
    assert [(row.place, row.multiplier) for row in rows] == [
        ("above the layers", 1.0), ("layer 1", 1.0), ("layer 0", 0.95), ("embeddings", pytest.approx(0.9025)), ("head", 10.0),
    ]  # fmt: skip
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

PATTERNS = [{"match": "embeddings", "lr": 0.5}, {"match": "^classifier", "lr": 10}]


def test_patterns_and_the_one_that_the_message_proposes_for_the_rest() -> None:
    model = build("bert")
    with pytest.raises(
        ModelError, match=r"no pattern of `groups` matches bert.encoder.layer.0.attention.*and 31 more"
    ) as caught:
        layerwise_groups(model, 1.0, groups=PATTERNS)
    proposed = parse_yaml(str(caught.value).partition(", add ")[2].removesuffix(".")).data
    found = rates(model, layerwise_groups(model, 1.0, groups=[*PATTERNS, proposed]))
    assert (found["bert.embeddings.LayerNorm.bias"], found["classifier.weight"]) == (0.5, 10)
    assert found["bert.pooler.dense.bias"] == found["bert.encoder.layer.1.output.dense.weight"] == 1


@pytest.mark.parametrize(("groups", "expected"), [
    ([{"match": "bert", "lr": 1}, {"match": "weight", "lr": 2}, {"match": "classifier.bias", "lr": 1}],
     "more than one pattern of `groups` matches bert.embeddings.word_embeddings.weight.*'bert' and 'weight'"),
    ([{"match": "", "lr": 1}, {"match": "encodr", "lr": 2}], "'encodr' of `groups` matches no parameter; the model has bert.emb"),
])  # fmt: skip
def test_patterns_that_do_not_fit_are_refused_by_name(groups: list[dict[str, Any]], expected: str) -> None:
    with pytest.raises(ModelError, match=expected):
        layerwise_groups(build("bert"), 1.0, groups=groups)


def test_patterns_see_the_checkpoints_names_under_adapters() -> None:
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(build("bert"), peft.LoraConfig(task_type="SEQ_CLS", target_modules=["query"], r=2))
    patterns = [{"match": "^classifier", "lr": 10}, {"match": r"^bert.*lora_", "lr": 1}]
    found = rates(model, layerwise_groups(model, 1.0, groups=patterns))
    assert sorted(set(found.values())) == [1, 10]
    assert len(found) == 2 + 4


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("settings", "expected"), [
    ({"decay": 0}, r"arms.x.methods\[0\].layerwise_lr.decay: found 0; allowed"),
    ({"decay": 1.1}, "decay: found 1.1"),
    ({"decay": "0.95"}, "decay: found '0.95'"),
    ({"head_multiplier": 0}, "head_multiplier: found 0"),
    ({"head_multiplier": -1}, "head_multiplier: found -1"),
    ({"groups": []}, "groups: is empty"),
    ({"groups": [{"match": "("}]}, "is not a regular expression|is missing"),
    ({"groups": [{"match": "(", "lr": 1}]}, r"'\(' is not a regular expression: missing \)"),
    ({"groups": [{"match": "a", "lr": 0}]}, r"groups\[0\].lr: found 0|groups: found"),
    ({"groups": [{"match": "a", "lr": 1}], "decay": 0.95}, "groups is given together with decay"),
    ({"groups": [{"match": "a", "lr": 1}], "decay": 1, "head_multiplier": 2}, "together with decay and head_multiplier"),
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


@pytest.mark.parametrize("settings", [{}, {"decay": 0.9, "head_multiplier": 2.0}, {"groups": PATTERNS}])
def test_what_is_written_down_can_be_read_again(settings: dict[str, Any]) -> None:
    use = parse_method_use({"layerwise_lr": settings})
    again = parse_method_use(use.as_json())
    assert again == use
    assert again.as_json() == use.as_json()


def test_one_rate_is_idle_and_the_control_of_many() -> None:
    idle = [parse_method_use({"layerwise_lr": {"decay": 1.0}})]
    for settings in ({"groups": [{"match": "", "lr": 1}]}, {"decay": 1}):
        assert parse_method_use({"layerwise_lr": settings}).config.idle
    for settings in ({}, {"decay": 1, "head_multiplier": 2}, {"groups": PATTERNS}):
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
    idle = LayerwiseLR(LayerwiseLRConfig.model_validate({"groups": [{"match": "", "lr": 1}]}))
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
    assert list(study.arms) == ["baseline", "published", "by-name"]
    for arm, embeddings in (("published", 0.9025), ("by-name", 0.5)):
        methods = [create_method(use, 0) for use in study.methods(arm)]
        found = rates(model, parameter_groups(model, Train(lr=1.0), methods))
        assert found["classifier.weight"] == 10
        assert found["bert.embeddings.LayerNorm.weight"] == pytest.approx(embeddings)
        assert found["bert.pooler.dense.weight"] == 1


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
