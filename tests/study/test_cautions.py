"""Cautions before the first run: a sound study gets none, and each fault gets its own, in words that help."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtune.core.cautions import Caution
from fairtune.study.cautions import RefusedPlan, language_caution
from fairtune.study.plan import Plan, make_plan
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml
from fairtune.tasks.task import Split

QK = [{"orthogonal_qk": {"init": "headwise"}}]
KEEP = [{"orthogonal_qk": {"init": "keep"}}]
ARMS: dict[str, Any] = {"baseline": {}, "freeze-pretrained": {"methods": KEEP}, "oelm": {"methods": QK}}
GPT: dict[str, Any] = {"model": {"preset": "gpt-mini", "context": 128}, "tokenizer": {"train": 300}}


@pytest.fixture
def source(tiny_model: Path, tiny_task: Any) -> dict[str, Any]:
    """A study that nothing is wrong with."""
    return {"study": "s", "task": tiny_task.as_study(), "model": str(tiny_model), "arms": ARMS}


def plan(source: dict[str, Any], force: bool = False, **changes: Any) -> Plan:
    return make_plan(load_study({**source, **changes}), force)


def only(made: Plan) -> Caution:
    (caution,) = made.cautions
    return caution


def test_a_sound_study_gets_none(source: dict[str, Any]) -> None:
    made = plan(source)
    assert made.cautions == ()
    assert made.as_json()["cautions"] == []
    assert len(made.study.seeds) == 5, "by default"


def copied_rows(tiny_task: Any, folder: Path, rows: int) -> str:
    """The validation file with so many rows of the test file in place of its own, in other case and spacing."""
    with tiny_task.validation.open(encoding="utf-8") as own, tiny_task.test.open(encoding="utf-8") as test:
        kept, taken = list(csv.reader(own)), list(csv.reader(test))
    kept[1 : rows + 1] = [[text.upper().replace(" ", "  "), label] for text, label in taken[1 : rows + 1]]
    file = folder / "validation.csv"
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows(kept)
    return str(file)


@pytest.mark.parametrize(("rows", "grade"), [(6, "warning"), (7, "refusal")])
def test_texts_shared_by_validation_and_test_are_refused_above_a_tenth(
    source: dict[str, Any], tiny_task: Any, tmp_path: Path, rows: int, grade: str
) -> None:
    task = {**source["task"], "validation": copied_rows(tiny_task, tmp_path, rows)}
    caution = only(plan(source, True, task=task))
    assert (caution.code, caution.grade, caution.forced) == ("splits-overlap", grade, grade == "refusal")
    assert f"{rows} of the 60 test texts" in caution.seen
    assert plan(source, task=task, dedupe=True).cautions == (), "as it says"


def test_documents_of_a_language_model_are_counted_too(tmp_path: Path) -> None:
    for split, first in (("train", 0), ("validation", 100), ("test", 100)):
        texts = [f"Story {number} tells of a cat and of {number} dogs." for number in range(first, first + 40)]
        (tmp_path / f"{split}.txt").write_text("\n\n".join(texts))
    files = {split: str(tmp_path / f"{split}.txt") for split in ("train", "validation", "test")}
    task = {"name": "stories", "kind": "language_model", **files}
    study = {"study": "s", "task": task, **GPT, "train": {"max_length": 32}, "arms": {"baseline": {}}}
    with pytest.raises(RefusedPlan, match="40 of the 40 test texts"):
        plan(study)


@pytest.mark.parametrize(
    ("compare", "code"),
    [
        ({"confidence": 0.79}, "confidence-low"),
        ({"margin": "26%"}, "margin-large"),
        ({"margin": 0.26}, "margin-large"),
        ({"margin": 1.5}, "margin-large"),
    ],
)
@pytest.mark.parametrize("metric", ["accuracy", "mcc"])
def test_verdicts_that_anything_would_get_are_refused(
    source: dict[str, Any], compare: dict[str, Any], code: str, metric: str
) -> None:
    task = {**source["task"], "metric": metric}
    with pytest.raises(RefusedPlan) as refused:
        plan(source, compare=compare, task=task)
    assert [caution.code for caution in refused.value.refusals] == [code]
    forced = plan(source, True, compare=compare, task=task)
    assert only(forced) == Caution(**{**vars(refused.value.refusals[0]), "forced": True})
    assert forced.as_json()["cautions"][0]["forced"] is True


def test_all_refusals_are_told_at_once_and_force_changes_no_hash(source: dict[str, Any]) -> None:
    with pytest.raises(RefusedPlan) as refused:
        plan(source, compare={"confidence": 0.6, "margin": "50%"})
    assert len(refused.value.refusals) == 2
    assert plan(source, True).hash == plan(source).hash


@pytest.mark.parametrize(
    ("changes", "code", "grade", "seen"),
    [
        ({"order": "sequential"}, "order-sequential", "warning", "sequential"),
        ({"seeds": 1}, "few-seeds", "warning", "1 per"),
        ({"seeds": 2}, "few-seeds", "warning", "2 per"),
        ({"seeds": 3}, None, None, ""),
        (
            {"arms": {**ARMS, "small": {"batch_size": 8, "accumulate": 4}}},
            "unequal-steps",
            "warning",
            "small: batch_size is 8, baseline has 32; accumulate is 4, baseline has 1",
        ),
        (
            {"arms": {**ARMS, "few": {"eval_examples": 20}}},
            "unequal-scoring",
            "warning",
            "few: eval_examples is 20, baseline has none",
        ),
        (
            {"arms": {"baseline": {"methods": QK}, "kept": {"methods": KEEP}, "plain": {}}},
            "reference-methods",
            "warning",
            "orthogonal_qk",
        ),
        ({"compare": {"to": "oelm"}}, "reference-methods", "note", "orthogonal_qk"),
        ({"aa": True}, None, None, ""),
    ],
)
def test_each_fault_of_a_design_gets_its_caution(
    source: dict[str, Any], changes: dict[str, Any], code: str | None, grade: str | None, seen: str
) -> None:
    found = plan(source, **changes).cautions
    assert [(caution.code, caution.grade) for caution in found] == ([(code, grade)] if code else [])
    assert all(seen in caution.seen for caution in found)


@pytest.mark.parametrize("own", [{"lr": 1e-4}, {}])
def test_new_and_frozen_weights_need_an_arm_that_only_freezes(source: dict[str, Any], own: dict[str, Any]) -> None:
    part = [{"orthogonal_qk": {"init": "normal", "layers": [1], "parts": ["q"]}}]
    arms = {"baseline": {}, "control": own, "focal": {"methods": ["focal"]}, "new": {**own, "methods": part}}
    cautions = [caution for caution in plan(source, arms=arms).cautions if caution.code == "no-freezing-control"]
    assert [caution.grade for caution in cautions] == ["warning"]
    line = cautions[0].do.removeprefix("Add the arm `").removesuffix("`")
    added = parse_yaml(line).data
    assert added["freeze-pretrained"] == {
        **own,
        "methods": [{"orthogonal_qk": {"init": "keep", "layers": [1], "parts": ["q"]}}],
    }
    codes = [caution.code for caution in plan(source, arms={**arms, **added}).cautions]
    assert "no-freezing-control" not in codes
    trainable = {"orthogonal_qk": {"init": "normal", "freeze": False}}
    assert plan(source, arms={"baseline": {}, "new": {"methods": [trainable]}}).cautions == ()


@pytest.mark.parametrize(
    ("train", "seen"),
    [({"examples": 99}, "99 of 200 training examples"), ({"epochs": 0.5}, "0.57 of an epoch"), ({"steps": 7}, None)],
)
def test_a_budget_too_small_for_a_published_figure_is_noted(
    source: dict[str, Any], tiny_model: Path, tmp_path: Path, train: dict[str, Any], seen: str | None
) -> None:
    folder = shutil.copytree(tiny_model, tmp_path / "bert-base-uncased")
    task = {**source["task"], "name": "sst2"}
    found = plan(source, task=task, model=str(folder), train=train).cautions
    if seen is None:
        assert found == ()
        return
    (caution,) = found
    assert (caution.code, caution.grade) == ("small-budget", "note")
    assert seen in caution.seen
    assert "92.7 to 93.2 %" in caution.why
    assert plan(source, train=train).cautions == (), "nothing is published of this task"


@pytest.mark.parametrize(
    ("changes", "code", "seen"),
    [
        ({"train": {"warmup": 500, "steps": 40}}, "warmup-long", ("500", "40")),
        ({"train": {"warmup": 40, "steps": 40}}, "warmup-long", ("40",)),
        ({"train": {"warmup": 39, "steps": 40}}, None, ()),
        ({"train": {"lr": 3}}, "rate-high", ("3", "0.05")),
        ({"train": {"lr": 0.05}}, None, ()),
    ],
)
def test_settings_that_teach_or_change_nothing_are_warned_about(
    source: dict[str, Any], changes: dict[str, Any], code: str | None, seen: tuple[str, ...]
) -> None:
    found = plan(source, **changes).cautions
    assert [caution.code for caution in found] == ([code] if code else []), "one for all arms"
    assert all(number in found[0].seen for number in seen)


def test_a_warm_up_is_too_long_for_trials_that_train_for_less(source: dict[str, Any]) -> None:
    tune = {"space": {"lr": [1e-5, 1e-4]}, "trials": 2, "budget": {"steps": 20}}
    found = only(plan(source, train={"steps": 100, "warmup": 30, "lr": 3}, tune=tune))
    assert found.code == "warmup-long", "the rate is tuned"
    assert "20" in found.seen
    assert "trials" in found.seen
    both = plan(source, tune={**tune, "space": {"lr": {"low": 1e-10, "high": 1, "log": True}}}).cautions
    assert [caution.code for caution in both] == ["rate-high"]
    assert plan(source, tune={**tune, "space": {"lr": [1e-5, 1e-4]}}, train={"lr": 3}).cautions == (), "it is tuned"


def test_rates_of_groups_are_compared_at_equal_rates(source: dict[str, Any]) -> None:
    """An arm whose parts all train at other rates than its control's differs from it in more than the method."""
    rates = {"methods": [{"layerwise_lr": {"groups": [{"match": ".", "lr": 1e-3}]}}]}
    found = plan(source, arms={"baseline": {}, "rates": rates})
    assert "no-control" in {caution.code for caution in found.cautions}
    (difference,) = found.differences
    assert (difference.arm, difference.setting, difference.value) == ("rates", "lr", 1e-3)
    added = plan(source, arms={"baseline": {}, "rates": rates}, controls=True)
    assert (added.controls["rates"], added.study.settings("baseline-lr-1e-3").lr) == ("baseline-lr-1e-3", 1e-3)
    with pytest.raises(StudyError, match="changes nothing here"):
        plan(source, arms={"baseline": {}, "rates": rates}, tune={"space": {"lr": [1e-5, 1e-4]}, "trials": 2})


def test_a_head_with_a_map_needs_the_same_head_without(source: dict[str, Any]) -> None:
    acting, watching = (
        {"methods": [{"bpsom": {"hidden": 8, "grid": 2, **own}}]} for own in ({}, {"alpha": 0, "prune": None})
    )
    alone = plan(source, arms={"baseline": {}, "bpsom": acting})
    assert only(alone).code == "no-observer"
    assert "bpsom: {hidden: 8, alpha: 0, prune: null}" in only(alone).do
    assert not plan(source, arms={"baseline": {}, "bpsom": acting, "bpsom-observer": watching}).cautions


@pytest.mark.parametrize(
    ("name", "letters", "model", "found"),
    [
        ("xnli/de", "Ein schöner Film", "google-bert/bert-base-uncased", True),
        ("xnli/de/translate-train", "Ein schöner Film", "FacebookAI/roberta-base@main", True),
        ("xnli/en", "A good film", "google-bert/bert-base-uncased", False),
        ("mine", "这是一部好电影", "microsoft/deberta-v3-base", True),
        ("xnli/zh", "这是一部好电影", "google-bert/bert-base-multilingual-cased", False),
        ("xnli/zh", "这是一部好电影", "FacebookAI/xlm-roberta-base", False),
        ("xnli/de", "Ein schöner Film", "microsoft/mdeberta-v3-base", False),
    ],
)
def test_an_english_model_is_warned_about_where_texts_are_not(name: str, letters: str, model: str, found: bool) -> None:
    split = Split.of(["1"], [(letters,)], np.array([0]))
    assert (language_caution(name, [split], model) is not None) == found
