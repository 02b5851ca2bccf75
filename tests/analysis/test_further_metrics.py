"""Metrics beside the study's own: verdicts of their own, registered with the plan, and decision lines picked on validation."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from tests.report.made_ledger import EXAMPLES, STUDY, ArmSpec, MadeLedger, make_study

from fairtune.analysis import statistics
from fairtune.analysis.collapses import UNRANKED, chance_score, is_collapsed
from fairtune.analysis.decision_lines import pick_line, probability_at
from fairtune.analysis.registration import register
from fairtune.analysis.resampling import scored
from fairtune.analysis.results import Results
from fairtune.analysis.statistics import paired_difference
from fairtune.analysis.verification import verify_study
from fairtune.core.errors import FairtuneError
from fairtune.core.files import read_json, write_json
from fairtune.ledger.predictions import Predictions, write_predictions
from fairtune.report.terminal import verdict_table
from fairtune.report.writer import write_report
from fairtune.settings.metrics import METRICS, classification_metrics, predicted_classes
from fairtune.settings.score_metrics import ScoredExamples

SCORED = [name for name, facts in METRICS.items() if facts.from_scores is not None]
IDS = tuple(f"t{i}" for i in range(EXAMPLES))
LABELS = np.arange(EXAMPLES) % 2


def made_scores(seed: int, skill: float, shift: float, n: int = EXAMPLES) -> np.ndarray:
    """Scores of two classes that rank as well as the skill says; the shift moves them all to one side of one half."""
    generator = np.random.default_rng(seed)
    shared = np.random.default_rng(99).normal(size=n)  # what makes an example hard for every run
    odds = skill * (2 * LABELS[:n] - 1) + 0.8 * shared + 0.6 * generator.normal(size=n) + shift
    return np.stack([np.zeros(n), odds], axis=1).astype(np.float32)


ARMS = {"baseline": (1.0, 0.0), "sharper": (1.5, -5.0), "moved": (1.0, -1.0), "lost": (-0.2, 0.0)}


def made(tmp_path: Path, metric: str = "accuracy", margin: Any = "2%", **compare: Any) -> Results:
    """A study whose arms differ in how well they rank, and in where their scores lie."""
    arms = {arm: ArmSpec([300] * 4) for arm in ARMS}
    ledger = make_study(tmp_path / "runs", arms, margin, metric=metric, **compare)
    for arm, (skill, shift) in ARMS.items():
        for seed in range(4):
            rescore(ledger, arm, seed, skill, shift)
    return ledger.results()


def rescore(ledger: MadeLedger, arm: str, seed: int, skill: float, shift: float) -> None:
    number = 100 * list(ARMS).index(arm) + seed
    parts = {
        name: Predictions(IDS, LABELS, made_scores(number + 1000 * place, skill, shift))
        for place, name in enumerate(("test", "validation"))
    }
    folder = ledger.folder(arm, seed)
    write_predictions(folder.predictions, parts)
    result = read_json(folder.result)
    assert result is not None
    metrics = {name: classification_metrics(part.labels, part.scores) for name, part in parts.items()}
    write_json(folder.result, {**result, "metrics": metrics})


@pytest.mark.parametrize("metric", SCORED)
def test_any_of_them_decides_a_study(tmp_path: Path, metric: str) -> None:
    results = made(tmp_path, metric)
    found = {one.arm: one for one in results.comparisons}
    assert all(one.verdict.word != "no verdict" for one in found.values())
    for arm in results.arms:
        summary, bounds = results.summary(arm), METRICS[metric].bounds
        assert summary.low is not None
        assert summary.high is not None
        assert bounds[0] <= summary.low < summary.mean < summary.high <= bounds[1]
    if METRICS[metric].ranks:
        assert found["sharper"].verdict.word == "better", "wherever its line lies"
        assert found["moved"].verdict.word in ("not separable", "equivalent", "not inferior")
        assert found["lost"].verdict.word == "inferior"
    text = str(results.verdict())
    assert METRICS[metric].title in text
    assert "nan" not in text
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(verdict_table(results))
    assert "nan" not in console.export_text()


def test_a_margin_in_percent_is_a_share_of_the_other_arms_log_loss(tmp_path: Path) -> None:
    results = made(tmp_path, "log_loss")
    moved = results.comparison("moved")
    assert moved is not None
    assert moved.margin == pytest.approx(0.02 * results.summary("baseline").mean)
    assert moved.verdict.word in ("inferior", "worse"), "a line in the wrong place costs probabilities"
    assert "log loss is higher by" in str(results.verdict())


def test_comparisons_by_another_metric_are_a_family_of_their_own(tmp_path: Path) -> None:
    results = made(tmp_path, "f1")
    by_f1, by_auc = ({one.arm: one.verdict.word for one in results.comparisons_by(m)} for m in ("f1", "roc_auc"))
    assert by_f1["sharper"] == "inferior", "its line says no to nearly everything"
    assert by_auc == {"sharper": "better", "moved": by_auc["moved"], "lost": "inferior"}
    assert {one.arm: one.verdict.word for one in results.comparisons} == by_f1, "the study's own verdict is what it was"
    assert results.by("roc_auc").metric == "roc_auc"
    assert results.metric == "f1"
    with pytest.raises(
        FairtuneError, match=r"found 'roc_aux'; allowed for this study: accuracy.* Did you mean 'roc_auc'"
    ):
        results.by("roc_aux")
    with pytest.raises(FairtuneError, match="allowed for this study"):
        results.by("perplexity")


def test_a_margin_that_is_no_share_is_of_the_studys_metric_alone(tmp_path: Path) -> None:
    results = made(tmp_path, "f1", margin=0.02)
    assert results.comparisons[0].margin == 0.02
    assert [one.margin for one in results.comparisons_by("log_loss")] == [None] * 3


def test_a_run_that_says_one_class_only_has_learned_by_how_it_ranks(tmp_path: Path) -> None:
    results = made(tmp_path, "accuracy")
    sharper, lost = results.finished("sharper"), results.finished("lost")
    assert all(is_collapsed(run, None, "accuracy") for run in sharper)
    assert not any(is_collapsed(run, None, "roc_auc") for run in sharper)
    assert any(is_collapsed(run, None, "roc_auc") for run in lost)
    assert UNRANKED in str(results.by("roc_auc").collapses["lost"])
    assert "sharper" not in results.by("log_loss").collapses


def test_what_each_metric_is_without_learning(tmp_path: Path) -> None:
    test = made(tmp_path).finished("baseline")[0].test
    found = {name: chance_score(test, name, None) for name in SCORED}
    expected = {
        "roc_auc": 0.5,
        "average_precision": 0.5,
        "log_loss": np.log(2),
        "brier": 0.25,
        "calibration_error": None,
    }
    assert found == pytest.approx(expected)


def test_named_metrics_stand_beside_the_verdict_and_in_the_report(tmp_path: Path) -> None:
    results = made(tmp_path, "f1", also=["roc_auc", "log_loss"])
    page = str(results.verdict())
    assert "The study's verdict goes by F1; beside it, each corrected for itself:" in page
    assert "ROC AUC, sharper: better than baseline by" in page
    assert page.index("sharper: inferior") < page.index("ROC AUC, sharper")
    data = results.verdict().as_json()
    assert [one["metric"] for one in data["further"]] == ["roc_auc", "log_loss"]
    assert not data["further"][0]["late"]
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(verdict_table(results))
    assert "ROC AUC, beside the verdict, points:" in console.export_text()


def test_the_report_has_lines_further_metrics_and_says_what_is_better(tmp_path: Path) -> None:
    results = made(tmp_path, "log_loss", also=["roc_auc"], threshold="validation")
    files = {kind: path.read_text() for kind, path in write_report(results).items()}
    for kind, head in (("markdown", "## "), ("html", "<h2>")):
        assert f"{head}Further metrics" in files[kind]
        assert f"{head}The decision line" in files[kind]
    assert "log loss (nats per example), lower is better" in files["markdown"]
    assert "lower is better" in files["html"]
    assert "by accuracy; of equally good ones" in files["markdown"], "log loss has no line, so accuracy picks it"
    assert '"further_metrics"' in files["json"]
    row = next(line for line in files["markdown"].splitlines() if line.startswith("| sharper | 4 | 0.0"))
    assert "(at one half −4" in row


def plan(name: str, recorded: str, **compare: Any) -> dict[str, Any]:
    arm = {"methods": [], "train": {}, "control": None}
    compared = {"to": "a", "margin": None, "confidence": 0.95, **compare}
    facts = {"task": {"name": "t", "metric": "f1"}, "model": {"name": "m"}, "seeds": [0], "runs": []}
    return {"plan": name, "recorded": recorded, "arms": {"a": arm}, "compare": compared, **facts}


def test_what_is_named_or_moved_after_results_is_dated() -> None:
    first = plan("first", "2026-11-01T00:00:00Z", also=["roc_auc"])
    later = plan("later", "2026-11-02T00:00:00Z", also=["log_loss"], threshold="validation", known=1) | {"known": 1}
    found = register(later, [first, later], [])
    told = [str(change) for change in found.changes]
    assert told == [
        "2026-11-02 00:00 UTC, after one result was known: decision line changed from half to validation",
        "2026-11-02 00:00 UTC, after one result was known: further metrics changed from roc_auc to log_loss",
    ]
    assert (found.beside, found.late) == (("roc_auc", "log_loss"), ("log_loss",)), "what was named is shown for good"
    assert (found.threshold, found.overruled) == ("half", ("threshold",)), "the line stays where it was"
    assert not found.fixed_before


def test_plans_from_before_there_were_any_are_no_change() -> None:
    old, new = plan("old", "2026-11-01T00:00:00Z"), plan("new", "2026-11-02T00:00:00Z", also=[], threshold="half")
    found = register({**new, "known": 3}, [old, {**new, "known": 3}], [])
    assert (found.changes, found.overruled, found.beside, found.threshold) == ((), (), (), "half")


def test_lines_are_picked_on_validation_and_used_on_test(tmp_path: Path) -> None:
    half, picked = made(tmp_path / "a", "f1"), made(tmp_path / "b", "f1", threshold="validation")
    before, after = (one.summary("sharper").mean for one in (half, picked))
    assert before < 0.2
    assert after > 0.85
    run = picked.finished("sharper")[0]
    assert isinstance(run.test, Predictions)
    validation = run.scored("validation")
    assert isinstance(validation, Predictions)
    assert run.line == pick_line(validation, "f1") == pytest.approx(-5, abs=1)
    assert run.metrics["f1"] == METRICS["f1"].of_predictions(LABELS, predicted_classes(run.test.scores, run.line), 2)
    assert run.metrics["roc_auc"] == half.finished("sharper")[0].metrics["roc_auc"], "no line touches it"
    assert run.half_metrics == half.finished("sharper")[0].metrics
    assert half.at("validation").table().equals(picked.table()), "the same without a plan that says so"
    assert picked.at("half").table().equals(half.table())
    with pytest.raises(FairtuneError, match="threshold: found 'best'; allowed: half, and validation for two classes"):
        half.at("best")
    word = next(one.verdict.word for one in picked.comparisons if one.arm == "sharper")
    assert word == "better"
    assert "by F1, not at one half." in str(picked.verdict())


def test_recorded_figures_are_compared_at_one_half(tmp_path: Path) -> None:
    results = made(tmp_path, "f1", threshold="validation")
    assert not [one for one in results.cautions if one.code == "figures-disagree"]
    assert verify_study(results.runs_folder, STUDY).problems == ()


@pytest.mark.parametrize(
    ("odds", "labels", "metric", "line"),
    [
        ([-2, -1, 1, 2], [0, 0, 1, 1], "accuracy", 0.0),  # one half is as good as any
        ([1, 2, 3, 4], [0, 0, 1, 1], "accuracy", 2.5),
        ([-4, -3, -2, -1], [0, 0, 1, 1], "f1", -2.5),
        ([-3, -1, 1, 3], [1, 0, 1, 0], "accuracy", 0.0),  # all as good: the nearest to one half
        (
            [2, 2, 2, 2],
            [0, 0, 1, 0],
            "accuracy",
            2.0,
        ),  # equal scores cannot be told apart: none is called the second class
        ([-1, -1, -1], [1, 1, 0], "accuracy", np.nextafter(-1, -2)),
    ],
)
def test_the_rule_by_which_a_line_is_picked(odds: list[float], labels: list[int], metric: str, line: float) -> None:
    scores = np.stack([np.zeros(len(odds)), odds], axis=1).astype(np.float32)
    assert pick_line(Predictions((), np.array(labels), scores), metric) == line
    assert probability_at(0.0) == 0.5


def test_one_half_is_exactly_the_class_with_the_highest_score() -> None:
    scores = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    scores[:50, 1] = scores[:50, 0]
    tiny = float(np.nextafter(0, 1))
    assert (predicted_classes(scores) == predicted_classes(scores, tiny)).all()


@pytest.mark.parametrize("metric", ["roc_auc", "log_loss", "f1"])
def test_a_simulated_null_is_called_in_at_most_five_percent(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = partial(statistics.bootstrap_variance, draws=250)  # enough for a variance, and quick
    monkeypatch.setattr(statistics, "bootstrap_variance", fewer)
    generator, called, studies, n = np.random.default_rng(23), 0, 120, 100
    for _ in range(studies):
        labels = (generator.random(n) < 0.4).astype(np.int64)
        hard = generator.normal(size=n)
        sides = []
        for _ in range(2):
            own = hard + 0.3 * generator.normal(size=n)
            luck = generator.normal(size=(4, 1, 2)) * 0.15
            odds = (2 * labels - 1) * (1 + luck[..., 0]) + own + 0.5 * generator.normal(size=(4, n)) + luck[..., 1]
            sides.append([Predictions((), labels, np.stack([np.zeros(n), run], 1).astype(np.float32)) for run in odds])
        called += is_called(sides, metric)
    assert called <= 0.05 * studies + 1.65 * np.sqrt(0.05 * 0.95 * studies), "a one-sided test of 5 %"


def is_called(sides: list[list[Predictions]], metric: str) -> bool:
    ours, theirs = ([scored(run, metric) for run in side] for side in sides)
    facts = METRICS[metric]
    values = [[facts.of_scores(ScoredExamples(run.labels, run.scores)) for run in side] for side in sides]
    by_seed = [a - b for a, b in zip(*values, strict=True)]
    found = paired_difference(ours, theirs, metric, by_seed, 0.95)
    assert found.p is not None
    return found.p < 0.05


def test_one_example_of_a_class_gives_no_verdict_about_its_ranking() -> None:
    labels = np.array([1, *[0] * 30])
    runs = [Predictions((), labels, made_scores(seed, 1.0, 0.0, 31)) for seed in range(6)]
    sides = [[scored(run, "roc_auc") for run in part] for part in (runs[:3], runs[3:])]
    found = paired_difference(sides[0], sides[1], "roc_auc", [0.1, 0.1, 0.1], 0.95)
    assert (found.p, found.trouble) == (None, "ROC AUC takes two test examples of each class, and there are fewer")
