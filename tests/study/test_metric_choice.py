"""A study may choose its metric: one that cannot be is refused in one sentence, and plans of studies that choose none stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import FairtuneError
from fairtune.study.plan import make_plan
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study

BASE: dict[str, Any] = {
    "study": "s", "task": "movie-reviews", "model": "minilm", "arms": {"baseline": {}, "fast": {"lr": 1e-4}}, "seeds": 2,
    "train": {"steps": 2, "examples": 20},
}  # fmt: skip
TEXT: dict[str, Any] = {
    **BASE,
    "task": "tinystories",
    "model": "gpt-mini",
    "tokenizer": {"train": 300},
    "train": {"steps": 2},
}


def plan_of(**changes: Any) -> Any:
    return make_plan(load_study({**BASE, **changes}), force=True)


def test_without_a_choice_the_plan_is_what_it_was() -> None:
    usual, spelled = plan_of(), plan_of(metric=None, compare={"also": [], "threshold": "half"})
    assert usual.hash == spelled.hash
    assert usual.as_json()["compare"] == {"to": "baseline", "margin": None, "confidence": 0.95}
    assert [run.key for run in usual.runs] == [run.key for run in spelled.runs]
    assert plan_of(metric="accuracy").hash == usual.hash, "the task's own metric is no other"


def test_a_metric_is_part_of_its_runs_since_it_selects_checkpoints() -> None:
    usual, other = plan_of(), plan_of(metric="roc_auc")
    assert other.task.metric == "roc_auc"
    assert other.runs[0].settings.as_json()["task"]["metric"] == "roc_auc"
    assert {run.key for run in usual.runs}.isdisjoint(run.key for run in other.runs)


def test_what_stands_beside_it_changes_the_plan_and_no_run() -> None:
    usual, other = plan_of(), plan_of(compare={"also": ["roc_auc"], "threshold": "validation"})
    assert [run.key for run in usual.runs] == [run.key for run in other.runs]
    assert usual.hash != other.hash
    assert other.as_json()["compare"] | {"also": ["roc_auc"], "threshold": "validation"} == other.as_json()["compare"]


@pytest.mark.parametrize(
    ("study", "where", "words"),
    [
        ({**BASE, "metric": "roc_acu"}, "metric", "found 'roc_acu'; allowed: .*Did you mean 'roc_auc'"),
        ({**BASE, "metric": "perplexity"}, "metric", "perplexity is for language models, which this task is not; use"),
        ({**BASE, "compare": {"target_loss": 0.5}}, "compare.target_loss", "this is for language models; use target"),
        ({**TEXT, "compare": {"target": 0.5}}, "compare.target", "this is for tasks that classify; use target_loss"),
        ({**BASE, "compare": {"also": ["brier", "brier"]}}, "compare.also", "a list of different entries"),
        ({**TEXT, "compare": {"threshold": "validation"}}, "compare.threshold", "a language model draws no line between classes"),
        (
            {**BASE, "metric": "f1", "task": {"train": "a.csv", "text": "t", "metric": "mcc"}},
            "metric", "f1 is given here and mcc in `task`; keep one of them",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_when_the_file_is_read(study: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(StudyError, match=words) as raised:
        load_study(study)
    assert any(problem.path.startswith(where) for problem in raised.value.problems)


def csv(tmp_path: Path, name: str, labels: str, each: int = 12) -> str:
    rows = [f"{name} text number {place} of {label},{label}" for label in labels for place in range(each)]
    file = tmp_path / name
    file.write_text("\n".join(["text,label", *rows]) + "\n")
    return str(file)


@pytest.mark.parametrize(
    ("classes", "changes", "words"),
    [
        ("abc", {"metric": "f1"}, "metric: f1 is for two classes, and task 'files' has 3; use macro_f1"),
        ("abc", {"compare": {"also": ["recall"]}}, "compare.also: recall is for two classes, .* use macro_recall"),
        ("ab", {"metric": "macro_recall"}, "metric: macro_recall is for more than two classes, .* has 2; use recall"),
        ("abc", {"claims": [{"arm": "fast", "better_than": "baseline", "metric": "f1"}]}, "claims.metric: f1 is for two classes"),
        ("abc", {"compare": {"threshold": "validation"}}, "a line is picked between two classes, and task 'files' has 3; use half"),
        ("ab", {"compare": {"target": 85}}, "compare.target: found 85; accuracy is from 0 to 1; for 85 % write 0.85"),
        ("ab", {"metric": "log_loss", "compare": {"target": -0.5}}, "compare.target: found -0.5; log_loss is 0 or more"),
        ("ab", {"metric": "brier", "compare": {"also": ["brier"]}}, "compare.also: brier is the study's own metric"),
    ],
)  # fmt: skip
def test_what_the_classes_do_not_allow_is_refused_when_planned(
    tmp_path: Path, classes: str, changes: dict[str, Any], words: str
) -> None:
    file = csv(tmp_path, "train.csv", classes, 40)
    with pytest.raises(FairtuneError, match=words):
        plan_of(task={"train": file, "test": csv(tmp_path, "test.csv", classes)}, **changes)


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision"])
@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_split_of_one_class_has_no_ranking(tmp_path: Path, metric: str, split: str) -> None:
    files = {name: csv(tmp_path, f"{name}.csv", "a" if name == split else "ab", 20) for name in ("validation", "test")}
    task = {"train": csv(tmp_path, "train.csv", "ab", 40), **files}
    words = (
        rf"task.metric: {metric} says how well classes are ranked, .* {split} split of task 'files' has one class only"
    )
    with pytest.raises(FairtuneError, match=rf"{words} \('a', n = 20\)"):
        plan_of(task={**task, "metric": metric})
    if split == "test":
        with pytest.raises(FairtuneError, match=f"compare.also: {metric} says how well"):
            plan_of(task=task, compare={"also": [metric]})
    else:
        assert plan_of(task=task, compare={"also": [metric]}).task.metric == "accuracy", "it selects nothing there"
