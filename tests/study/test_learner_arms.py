"""Simple baselines in a study: arms like any other in the plan, but with no settings of training, no methods and no control."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairtune.settings.learners import LEARNERS
from fairtune.study.plan import Plan, make_plan
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from fairtune.testing.toy import TaskFiles

SIMPLE = ("majority", "tfidf", "naive-bayes", "linear-probe", "knn-probe")


def problems(arms: dict[str, Any], **more: Any) -> dict[str, str]:
    study = {"study": "s", "task": "movie-reviews", "model": "minilm", "arms": {"baseline": {}, **arms}, **more}
    with pytest.raises(StudyError) as caught:
        load_study(study)
    found = {problem.path: problem.message for problem in caught.value.problems}
    assert len(found) == len(caught.value.problems), "a problem is reported once"
    return found


@pytest.mark.parametrize(
    ("arm", "path", "message"),
    [
        ({"tfidf": {"lr": 1e-3}}, "arms.tfidf.lr", "this means nothing to 'tfidf'"),
        ({"majority": {"epochs": 3}}, "arms.majority.epochs", "means nothing to 'majority'"),
        ({"linear-probe": {"precision": "bf16"}}, "arms.linear-probe.precision", "means nothing to 'linear-probe'"),
        ({"tfidf": {"max_length": 64}}, "arms.tfidf.max_length", "means nothing to 'tfidf', which reads whole texts"),
        ({"tfidf": {"model": "minilm"}}, "arms.tfidf.model", "'tfidf' uses no model; remove it"),
        ({"x": {"learner": "tfidf", "methods": ["focal"]}}, "arms.x.methods", "not fine-tuned, so it has no methods"),
        ({"tfidf": {"methods": ["focal"]}}, "arms.tfidf.methods", "the name of a simple baseline"),
        ({"x": {"learner": "tfidf", "preset": "oelm-freeze"}}, "arms.x.preset", "given together with `learner`"),
        ({"x": {"learner": "svm"}}, "arms.x.learner", "majority, tfidf, naive-bayes, linear-probe, knn-probe, setfit"),
        ({"linear_probe": {}}, "arms.linear_probe", "Did you mean 'linear-probe'?"),
        ({"tfidf-500": {"examples": 500}}, "arms.tfidf-500", "Did you mean 'tfidf'?"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("arms") else "",
)
def test_what_a_learner_cannot_be_told_is_one_clear_sentence(arm: dict[str, Any], path: str, message: str) -> None:
    found = problems(arm)
    assert list(found) == [path]
    assert message in found[path]


@pytest.mark.parametrize("learner", ["tfidf", "linear-probe"])
def test_a_language_model_task_has_no_classes_to_tell_apart(learner: str) -> None:
    found = problems(
        {learner: {}}, task="tinystories", model="gpt-mini", tokenizer={"train": 1000}, train={"steps": 10}
    )
    assert found == {
        f"arms.{learner}": f"'{learner}' tells classes apart, and a language-model task has none; remove this arm"
    }


@pytest.mark.parametrize("learner", ["linear-probe", "knn-probe"])
def test_a_preset_has_no_pretrained_encoder(learner: str) -> None:
    found = problems({learner: {}, "tfidf": {}}, model="gpt-mini", tokenizer={"train": 1000})
    assert list(found) == [f"arms.{learner}"]
    assert "needs a pretrained encoder" in found[f"arms.{learner}"]


@pytest.mark.parametrize(("field", "value", "why"), [("aa", True, "no random numbers"), ("time", True, "no steps")])
def test_a_learner_that_others_are_compared_to_has_neither_copy_nor_steps(field: str, value: Any, why: str) -> None:
    found = problems({"tfidf": {}}, compare={"to": "tfidf"}, **{field: value})
    assert list(found) == [field]
    assert why in found[field]


@pytest.fixture(scope="module")
def toy(tiny_model: Path, tiny_task: TaskFiles) -> Any:
    def plan(arms: dict[str, Any], **more: Any) -> Plan:
        study = {"study": "s", "task": tiny_task.as_study(), "model": str(tiny_model), "seeds": 2, "arms": arms}
        return make_plan(load_study({**study, "train": {"max_length": 32}, **more}))

    return plan


def test_a_learners_runs_have_what_decides_them_and_nothing_else(toy: Any) -> None:
    arms = {"baseline": {}, **{name: {} for name in SIMPLE}, "few": {"learner": "tfidf", "examples": 50}}
    runs = {run.arm: run for run in toy(arms).runs if run.seed == 0}
    for arm in (*SIMPLE, "few"):
        settings = runs[arm].settings.as_json()
        learner = LEARNERS[settings["learner"]["name"]]
        assert set(settings["train"]) == set(learner.settings or ())
        assert ("model" in settings) == learner.encoder
        assert settings["methods"] == []
        assert runs[arm].steps == 0
        assert f"|learner:{learner.name}.1|" in f"{runs[arm].signature}|"
    assert "learner" not in runs["baseline"].settings.as_json()
    assert runs["few"].settings.as_json()["train"]["examples"] == 50


def test_learners_change_no_other_arms_runs(toy: Any) -> None:
    """Nor do settings of training that mean nothing to them change theirs."""
    alone, beside = toy({"baseline": {}}), toy({"baseline": {}, "tfidf": {}}, train={"max_length": 32})
    other = toy({"baseline": {}, "tfidf": {}}, train={"max_length": 32, "lr": 1e-3})
    keys = [{run.name: run.key for run in plan.runs} for plan in (alone, beside, other)]
    assert keys[0].items() <= keys[1].items()
    assert keys[1]["tfidf/seed-0"] == keys[2]["tfidf/seed-0"] != keys[1]["tfidf/seed-1"]
    assert keys[1]["baseline/seed-0"] != keys[2]["baseline/seed-0"]


def test_learners_are_no_difference_no_control_and_have_none(toy: Any) -> None:
    arms = {"baseline": {"lr": 1e-4}, "fast": {"lr": 1e-3, "methods": ["focal"]}, "tfidf": {}, "linear-probe": {}}
    plan = toy(arms)
    assert {difference.arm for difference in plan.differences} == {"fast"}
    assert plan.controls == dict.fromkeys(arms)
    assert plan.primaries == {"baseline": None, "fast": "baseline", "tfidf": "baseline", "linear-probe": "baseline"}
    assert "unequal-steps" not in {caution.code for caution in plan.cautions}
    controlled = toy(arms, controls=True, aa=True)
    assert set(controlled.study.arms) - set(arms) == {"baseline-lr-1e-3", "baseline-again"}
    assert controlled.trained == [arm for arm in controlled.study.arms if arm not in ("tfidf", "linear-probe")]


def test_everything_can_be_compared_to_a_learner_and_methods_still_to_their_controls(toy: Any) -> None:
    plan = toy({"linear-probe": {}, "plain": {}, "focal": {"methods": ["focal"]}, "fast": {"lr": 1e-3, "methods": ["rdrop"]}},
               compare={"to": "linear-probe"})  # fmt: skip
    assert plan.primaries == {
        "linear-probe": None, "plain": "linear-probe", "focal": "plain", "fast": "linear-probe",
    }  # fmt: skip
    assert plan.differences == ()
    (lacking,) = [caution for caution in plan.cautions if caution.code == "no-control"]
    assert "fast: no arm without methods has the same settings, and linear-probe is not fine-tuned" in lacking.seen
    assert "baseline-lr-1e-3: {lr: 0.001}" in lacking.do
    added = toy({"linear-probe": {}, "focal": {"methods": ["focal"]}}, compare={"to": "linear-probe"}, controls=True)
    assert added.primaries["focal"] == "baseline"
