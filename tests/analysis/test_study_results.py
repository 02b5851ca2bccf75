"""Results: everything recomputed from the ledger, and everything left out is listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.sealed import close_again

from fairtune.analysis.results import Results, load_results
from fairtune.core.errors import LedgerError
from fairtune.core.files import read_sealed, write_sealed
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import lock, run_folder
from fairtune.ledger.predictions import Predictions, write_predictions
from fairtune.ledger.seals import close_run
from fairtune.ledger.studies import write_study
from fairtune.settings.metrics import classification_metrics
from fairtune.study.plan import Plan, make_plan
from fairtune.study.study_file import load_study

ARMS: dict[str, Any] = {"baseline": {}, "fast": {"lr": 1e-4}, "oelm": {"lr": 1e-4, "methods": ["orthogonal_qk"]}}
ACCURACY = {"baseline": 0.80, "fast": 0.82, "oelm": 0.95}
SECONDS = {"baseline": 0.2, "fast": 0.2, "oelm": 0.1}
LABELS = np.arange(400) % 2


class Ledger:
    """A ledger as a study leaves it, made without training anything."""

    def __init__(self, runs: Path, source: dict[str, Any]) -> None:
        self.runs, self.source = runs, source

    def plan(self, *overrides: str) -> Plan:
        plan = make_plan(load_study(self.source, overrides))
        folder = self.runs / "s"
        folder.mkdir(parents=True, exist_ok=True)
        write_study(folder, plan.as_json())
        return plan

    def finish(self, plan: Plan, accuracy: dict[str, float] | None = None, skip: tuple[str, ...] = ()) -> None:
        for run in plan.runs:
            if run.name not in skip:
                self.finish_run(plan, run, (accuracy or ACCURACY)[run.arm])

    def finish_run(self, plan: Plan, run: Any, accuracy: float, ids: str = "test") -> None:
        folder = run_folder(self.runs, "s", run.arm, run.seed)
        folder.write_plan({"plan": plan.hash, "study": "s", **run.as_json()})
        generator = np.random.default_rng([run.seed, list(ARMS).index(run.arm)])
        right = generator.permutation(len(LABELS)) < round((accuracy + 0.01 * run.seed) * len(LABELS))
        scores = np.eye(2, dtype=np.float32)[np.where(right, LABELS, 1 - LABELS)]
        part = Predictions(tuple(f"{ids}-{i}" for i in range(len(LABELS))), LABELS, scores)
        write_predictions(folder.predictions, {"validation": part, "test": part})
        result = {
            "status": "finished",
            "signature": run.signature,
            "metric": "accuracy",
            "metrics": {"test": {"accuracy": 0.123}},  # a lie: figures come from predictions
            "step_seconds": {"median": SECONDS[run.arm] * (1 + run.seed)},
            "parameters": {"trainable_share": 0.5 if run.arm == "oelm" else 1.0},
        }
        close_run(folder, run.key, result)

    def results(self) -> Results:
        return load_results(self.runs, "s")


@pytest.fixture
def ledger(tmp_path: Path, tiny_model: Path, tiny_task: Any) -> Ledger:
    source = {"study": "s", "task": tiny_task.as_study(), "model": str(tiny_model), "arms": ARMS, "seeds": 3}
    return Ledger(tmp_path / "runs", source)


def test_figures_are_recomputed_from_predictions(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    results = ledger.results()
    assert [round(run.metrics["accuracy"], 4) for run in results.finished("baseline")] == [0.80, 0.81, 0.82]
    summary = results.summary("baseline")
    assert (summary.n, summary.mean, summary.sd) == (3, pytest.approx(0.81), pytest.approx(0.01))
    first = results.finished("oelm")[0]
    assert first.metrics == classification_metrics(first.test.labels, first.test.scores)
    assert results.summary("oelm", "mcc").mean == pytest.approx(
        np.mean([r.metrics["mcc"] for r in results.finished("oelm")])
    )


def test_classifiers_have_no_figures_of_their_last_weights(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    results = ledger.results()
    assert results.kind == "classify"
    assert results.finished("oelm")[0].final is None
    assert not {"final_mean", "steps_to_target", "tokens_per_second"} & set(results.table().columns)
    with pytest.raises(LedgerError, match="only language models do"):
        results.summary("oelm", which="final")


def test_the_table_has_one_row_per_arm(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    table = ledger.results().table()
    assert list(table.index) == ["baseline", "fast", "oelm"]
    assert list(table["n"]) == [3, 3, 3]
    assert table.loc["oelm", "mean"] == pytest.approx(0.96)
    assert table.loc["oelm", "against"] == "fast", "its control, which has its learning rate"
    assert table.loc["oelm", "difference"] == pytest.approx(0.13)
    assert table.loc["oelm", "difference_low"] < 0.13 < table.loc["oelm", "difference_high"]
    assert table.loc["oelm", "family_low"] < table.loc["oelm", "difference_low"]
    assert table.loc["oelm", "family_high"] > table.loc["oelm", "difference_high"]
    assert table.loc["oelm", "verdict"] == "better"
    assert table.loc["oelm", "confounds"] == ""
    assert table.loc["fast", "against"] == "baseline"
    assert table.loc["fast", "confounds"] == "lr", "it compares settings"
    assert pd.isna(table.loc["oelm", "seconds_per_step"]), "which a timing experiment alone tells"
    assert pd.isna(table.loc["oelm", "time_ratio"])
    assert table.loc["oelm", "trainable_share"] == 0.5
    assert table.loc["baseline", "verdict"] == "reference"
    assert pd.isna(table.loc["baseline", "p"])


def test_each_arm_is_compared_once_like_with_like_where_the_study_allows(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    results = ledger.results()
    assert [(c.arm, c.reference, c.about) for c in results.comparisons] == [
        ("fast", "baseline", "settings"),
        ("oelm", "fast", "methods"),
    ]
    fair = results.comparison("oelm")
    assert fair is not None
    assert fair == results.comparison("oelm", "fast")
    assert fair.confounds == ()
    assert fair.difference == pytest.approx(0.13)
    assert fair.means == (pytest.approx(0.96), pytest.approx(0.83))
    assert fair.slowdown is None, "the two were not timed against each other"
    assert results.comparison("baseline") is None


def test_the_plain_difference_to_the_reference_is_a_description_without_verdict(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    results = ledger.results()
    assert [(c.arm, c.reference) for c in results.raw_differences] == [("oelm", "baseline")]
    plain = results.comparison("oelm", "baseline")
    assert plain is not None
    assert plain.confounds == ("lr",)
    assert plain.difference == pytest.approx(0.15)
    assert (plain.verdict.word, plain.verdict.p, plain.family) == ("descriptive", None, (None, None))


def test_without_a_control_method_and_setting_cannot_be_told_apart(ledger: Ledger) -> None:
    ledger.source = {**ledger.source, "arms": {"baseline": {}, "oelm": ARMS["oelm"]}}
    ledger.finish(ledger.plan())
    (found,) = ledger.results().comparisons
    assert (found.reference, found.about, found.verdict.word, found.verdict.p) == (
        "baseline", "methods and settings", "not shown", None
    )  # fmt: skip
    assert "method and lr cannot be told apart" in found.verdict.note
    assert found.difference == pytest.approx(0.15), "what was seen is shown all the same"


def test_p_is_corrected_over_the_primary_comparisons(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    comparisons = ledger.results().comparisons
    smallest = min(comparisons, key=lambda c: c.found.p or 1)
    assert smallest.found.p is not None
    assert smallest.verdict.p == pytest.approx(smallest.found.p * 2)


def test_a_planned_comparison_without_runs_counts_in_the_correction(ledger: Ledger) -> None:
    ledger.finish(ledger.plan(), skip=tuple(f"oelm/seed-{seed}" for seed in range(3)))
    fast, oelm = ledger.results().comparisons
    assert oelm.verdict.word == "no verdict"
    assert fast.found.p is not None
    assert fast.verdict.p == pytest.approx(min(1.0, 2 * fast.found.p))


def test_another_arm_may_be_the_reference(ledger: Ledger) -> None:
    ledger.finish(ledger.plan("compare.to=fast"))
    results = ledger.results()
    assert results.reference == "fast"
    assert [(c.arm, c.reference) for c in results.comparisons] == [("baseline", "fast"), ("oelm", "fast")]


@pytest.mark.parametrize(("given", "margin"), [("2%", 0.02 * 0.81), ("0.03", 0.03), ("null", None)])
def test_a_margin_in_percent_is_of_the_references_mean(ledger: Ledger, given: str, margin: float | None) -> None:
    ledger.finish(ledger.plan(f"compare.margin={given}"))
    found = ledger.results().margin
    assert found == (None if margin is None else pytest.approx(margin))


def test_a_margin_of_nothing_finished_is_none(ledger: Ledger) -> None:
    ledger.plan("compare.margin=2%")
    assert ledger.results().margin is None


def test_nothing_run_yet_is_no_figure_and_no_verdict(ledger: Ledger) -> None:
    ledger.plan()
    results = ledger.results()
    assert {run.status for run in results.runs} == {"waiting"}
    table = results.table()
    assert list(table["n"]) == [0, 0, 0]
    assert table["mean"].isna().all()
    assert table.loc["oelm", "verdict"].startswith("no verdict (no run to compare")
    assert "0 of 9 runs finished" in repr(results)


def test_one_seed_is_no_verdict(ledger: Ledger) -> None:
    ledger.finish(ledger.plan("seeds=1"))
    table = ledger.results().table()
    assert table.loc["oelm", "verdict"].startswith("no verdict (one run only")
    assert table.loc["oelm", "difference"] == pytest.approx(0.13)
    assert pd.isna(table.loc["oelm", "p"])


def test_only_seeds_that_both_arms_finished_are_paired(ledger: Ledger) -> None:
    ledger.finish(ledger.plan(), skip=("fast/seed-0", "oelm/seed-2"))
    found = ledger.results().comparison("oelm")
    assert found is not None
    assert found.found.n == 1
    assert found.difference == pytest.approx(0.13)
    assert found.means == (pytest.approx(0.96), pytest.approx(0.83)), "of the shared seed alone"


def test_failures_are_listed_with_their_reasons(ledger: Ledger) -> None:
    plan = ledger.plan()
    ledger.finish(plan)
    folder = run_folder(ledger.runs, "s", "oelm", 1)
    planned = read_sealed(folder.plan)
    folder.begin(planned)
    write_sealed(folder.result, {"status": "failed", "reason": "loss is nan at step 7", "key": planned["key"]})
    results = ledger.results()
    assert results.failures == {"oelm/seed-1": "loss is nan at step 7"}
    assert results.summary("oelm").n == 2


def test_begun_and_not_ended_is_interrupted_or_running(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    folder = run_folder(ledger.runs, "s", "oelm", 1)
    folder.begin(read_sealed(folder.plan))
    assert {(r.arm, r.seed): r.status for r in ledger.results().runs}["oelm", 1] == "interrupted"
    with lock(folder.path / ".lock", "taken"):
        assert {(r.arm, r.seed): r.status for r in ledger.results().runs}["oelm", 1] == "running"


def test_runs_of_another_plan_are_left_out_and_listed(ledger: Ledger) -> None:
    ledger.finish(ledger.plan("seeds=4", "arms.fast.lr=3e-4"))
    ledger.plan()
    results = ledger.results()
    assert sorted(results.exclusions) == [
        "baseline/seed-3: not in the newest plan",
        "fast/seed-0: made with other settings than the newest plan's",
        "fast/seed-1: made with other settings than the newest plan's",
        "fast/seed-2: made with other settings than the newest plan's",
        "fast/seed-3: not in the newest plan",
        "oelm/seed-3: not in the newest plan",
    ]
    assert (results.summary("baseline").n, results.summary("fast").n) == (3, 0)
    assert {run.status for run in results.runs if run.arm == "fast"} == {"waiting"}


def test_a_folder_moved_aside_does_not_matter(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    folder = run_folder(ledger.runs, "s", "oelm", 1).path
    folder.rename(folder.with_name("seed-1.old"))
    results = ledger.results()
    assert results.exclusions == []
    assert results.summary("oelm").n == 2


def test_arms_scored_on_different_examples_are_not_compared(ledger: Ledger) -> None:
    plan = ledger.plan()
    ledger.finish(plan)
    run = next(r for r in plan.runs if r.name == "oelm/seed-1")
    ledger.finish_run(plan, run, 0.9, ids="other")
    with pytest.raises(LedgerError, match="oelm and fast were scored on different examples"):
        _ = ledger.results().comparisons


def test_lost_predictions_leave_the_run_out_and_name_it(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    run_folder(ledger.runs, "s", "oelm", 1).predictions.unlink()
    results = ledger.results()
    assert results.summary("oelm").n == 2
    assert results.exclusions == [
        "oelm/seed-1: predictions.parquet is missing; move its folder away and run the study again"
    ]


def test_a_run_that_never_had_predictions_is_reported_with_its_file(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    folder = run_folder(ledger.runs, "s", "oelm", 1)
    folder.predictions.unlink()
    close_again(folder)
    with pytest.raises(LedgerError, match=r"oelm/seed-1/predictions\.parquet: .* cannot be read"):
        ledger.results().summary("oelm")


def test_a_damaged_study_record_is_reported(ledger: Ledger) -> None:
    ledger.plan()
    (ledger.runs / "s" / "study.json").write_text("{")
    with pytest.raises(LedgerError, match=r"study\.json is not readable JSON; run the study again"):
        ledger.results()


def test_an_unknown_study_is_reported(ledger: Ledger) -> None:
    ledger.plan()
    with pytest.raises(LedgerError, match="no study 'x'"):
        load_results(ledger.runs, "x")


def test_events_of_a_run_are_those_that_count(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    log = EventLog(run_folder(ledger.runs, "s", "baseline", 0).events)
    for event, unit in (("resumed", 0), ("step", 0), ("step", 1), ("resumed", 1), ("step", 1)):
        log.write(event, unit)
    log.close()
    close_again(run_folder(ledger.runs, "s", "baseline", 0))
    assert [e["unit"] for e in ledger.results().runs[0].events if e["event"] == "step"] == [0, 1]


def test_reading_results_writes_nothing(ledger: Ledger) -> None:
    ledger.finish(ledger.plan())
    before = {p: p.stat().st_mtime_ns for p in ledger.runs.rglob("*")}
    ledger.results().table()
    assert {p: p.stat().st_mtime_ns for p in ledger.runs.rglob("*")} == before


def test_a_plan_of_an_earlier_version_is_told_how_to_be_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    write_study(folder, {"plan": "0", "task": {}, "compare": {}, "arms": {"baseline": {"methods": []}}, "runs": []})
    with pytest.raises(LedgerError, match=r"not a plan of this version: arms.baseline.control.*run the study again"):
        load_results(tmp_path, "old")
