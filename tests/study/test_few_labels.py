"""`examples: {per_class, resample}`: what a study may say, what its plan makes of it, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairtune.analysis.plan_power import describe_plan
from fairtune.core.errors import DataError
from fairtune.settings.few_labels import FewLabels, examples_used, shared_samples
from fairtune.study.plan import Plan, make_plan
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml

FEW = {"per_class": 8, "resample": "seed"}


@pytest.fixture
def source(tiny_model: Path, tiny_task: Any) -> dict[str, Any]:
    return {
        "study": "s",
        "task": tiny_task.as_study(),
        "model": str(tiny_model),
        "train": {"examples": FEW, "batch_size": 4, "epochs": 2},
        "arms": {"baseline": {}, "focal": {"methods": ["focal"]}},
        "seeds": [3, 5],
    }


def plan(source: dict[str, Any], *overrides: str) -> Plan:
    return make_plan(load_study(source, overrides))


def test_each_seed_has_its_own_sample_and_all_arms_share_it(source: dict[str, Any]) -> None:
    made = plan(source)
    assert {run.name: run.settings.as_json()["sample"] for run in made.runs} == {
        "baseline/seed-3": 3,
        "focal/seed-3": 3,
        "focal/seed-5": 5,
        "baseline/seed-5": 5,
    }
    assert all(run.settings.as_json()["train"]["examples"] == FEW for run in made.runs)
    assert {run.steps for run in made.runs} == {8}, "16 examples in fours, twice"


def test_the_copy_of_the_reference_draws_other_numbers_and_the_same_sample(source: dict[str, Any]) -> None:
    made = plan(source, "aa=true")
    copies = [run.settings.as_json() for run in made.runs if run.arm == "baseline-again"]
    assert sorted(run["sample"] for run in copies) == [3, 5]
    assert not {run["seed"] for run in copies} & {3, 5}


@pytest.mark.parametrize(
    ("examples", "words"),
    [
        ("{per_class: 8, resample: seed}", "each seed trains on its own 8 examples per class (2 classes, 16 in all)"),
        ("{per_class: 8}", "all seeds train on the same 8 examples per class (2 classes, 16 in all)"),
        ("20", "all seeds train on the same 20 of 200 examples"),
    ],
)
def test_a_plan_names_the_sample(source: dict[str, Any], examples: str, words: str) -> None:
    made = plan(source, f"train.examples={examples}")
    assert [sample.text for sample in made.samples] == [f"{words}, shared by all arms"]
    assert [sample.resampled for sample in made.samples] == ["seed" in examples]


def test_arms_with_samples_of_their_own_are_named(source: dict[str, Any]) -> None:
    made = plan(source, "arms.focal.examples={per_class: 4, resample: seed}")
    assert [sample.text for sample in made.samples] == [
        "each seed trains on its own 8 examples per class (2 classes, 16 in all) (arm baseline)",
        "each seed trains on its own 4 examples per class (2 classes, 8 in all) (arm focal)",
    ]
    assert any("examples is per_class 4, resample seed" in str(found) for found in made.differences)
    assert "examples: {per_class: 4, resample: seed}" in str(made.differences[0].add), "a line that can be pasted"


def test_all_examples_are_no_sample() -> None:
    assert shared_samples({"a": None, "b": 500}, 500, 2) == ()
    assert [examples_used(one, 500, 4) for one in (None, 90, 900, FEW, FewLabels(per_class=200))] == [
        500,
        90,
        500,
        32,
        500,
    ]


@pytest.mark.parametrize(
    ("examples", "words"),
    [
        ({"per_class": 0}, "train.examples.per_class: found 0; allowed: a whole number from 1 to 1,000,000,000"),
        ({"per_class": 8, "resample": "arm"}, "train.examples.resample: found 'arm'; allowed: seed or null"),
        ({"per_class": 8, "sample": "seed"}, "unknown key; allowed: per_class, resample. Did you mean 'resample'?"),
        (
            1,
            "train.examples: found 1; allowed: a whole number from 2 to 1,000,000,000, or a mapping with `per_class` and",
        ),
    ],
)
def test_what_it_may_not_say(source: dict[str, Any], examples: Any, words: str) -> None:
    source["train"]["examples"] = examples
    with pytest.raises(StudyError) as refused:
        load_study(source)
    assert words in str(refused.value)
    assert len(refused.value.problems) == 1


@pytest.mark.parametrize(
    ("override", "place"),
    [
        ("train.examples.per_class=900", "train.examples"),
        ("arms.focal.examples={per_class: 900}", "arms.focal.examples"),
    ],
)
def test_more_than_a_class_has_is_refused_when_it_is_planned(source: dict[str, Any], override: str, place: str) -> None:
    with pytest.raises(
        DataError, match=rf"{place}: per_class is 900, but class '\w+' has 100 training examples, and 1 other"
    ):
        plan(source, override)


def test_what_a_plan_can_show_is_less_for_few_labels(source: dict[str, Any]) -> None:
    few, whole = (describe_plan(plan(source, f"train.examples={one}", "seeds=5").as_json()) for one in (FEW, "null"))
    assert "assumed for few labels: arms that share a sample differ by the luck of 2 points by seed" in str(few)
    assert "few labels" not in str(whole)


def test_the_study_in_the_docs_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "few-labels.md").read_text(encoding="utf-8")
    (written,) = [
        block.partition("```")[0] for block in page.split("```yaml\n")[1:] if "study:" in block.partition("```")[0]
    ]
    study = load_study(parse_yaml(written).data, ["study=few-64", "train.examples.per_class=64"])
    assert study.train.examples == FewLabels(per_class=64, resample="seed")
