"""Failed, missing and collapsed runs are counted, never dropped with their pair; and what did not learn stands at the top."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.report.made_ledger import EXAMPLES, ArmSpec, MadeLedger, make_study

from fairtune.analysis.collapses import chance_score, is_collapsed
from fairtune.analysis.cut_batches import cut_notes
from fairtune.core.cautions import Caution
from fairtune.core.files import read_sealed, write_sealed
from fairtune.ledger.predictions import Predictions, write_predictions
from fairtune.ledger.studies import write_study
from fairtune.report.writer import make_content

FOCAL = [{"focal": {"gamma": 2.0}}]
NAN = "the loss is nan at step 3 of 20"


def test_better_that_hangs_on_a_failed_run_is_not_shown(tmp_path: Path) -> None:
    whole = {"baseline": ArmSpec([285, 289, 282, 286, 284]), "arm": ArmSpec([305, 335, 312, 321, 330], methods=FOCAL)}
    assert make_study(tmp_path / "whole", whole).results().verdict().words["arm"] == "better"
    lost = {**whole, "arm": ArmSpec([305, 335, 312, NAN, 330], methods=FOCAL)}
    found = make_study(tmp_path / "lost", lost).results().comparisons[0]
    assert found.verdict.word == "not shown"
    assert "hangs on arm/seed-3: better without it" in found.verdict.note


def test_a_large_difference_survives_it_and_says_what_the_harshest_count_would_do(tmp_path: Path) -> None:
    arms = {"baseline": ArmSpec([250, 252, 249, 251, 250]), "arm": ArmSpec([330, 331, 329, NAN, 330], methods=FOCAL)}
    found = make_study(tmp_path, arms).results().comparisons[0]
    assert found.verdict.word == "better"
    assert "a model that learned nothing" in found.verdict.note


def test_the_reference_may_not_gain_by_its_failures_either(tmp_path: Path) -> None:
    arms = {"baseline": ArmSpec([305, 335, 312, NAN, 330]), "arm": ArmSpec([285, 289, 282, 286, 284], methods=FOCAL)}
    assert make_study(tmp_path, arms).results().verdict().words["arm"] == "not shown"


def test_figures_that_stand_together_are_of_the_same_seeds(tmp_path: Path) -> None:
    arms = {"baseline": ArmSpec([300, NAN, 240]), "arm": ArmSpec([310, 390, 250], methods=FOCAL)}
    results = make_study(tmp_path, arms).results()
    row = next(row for row in make_content(results).rows if row.arm == "arm")
    assert row.versus is not None
    assert row.versus.mean is not None
    assert row.versus.base is not None
    assert row.summaries["accuracy"].n == row.versus.n == 2
    assert row.summaries["accuracy"].mean == row.versus.mean == pytest.approx(280 / 400)
    assert row.versus.difference == pytest.approx(row.versus.mean - row.versus.base)


def collapse(made: MadeLedger, arm: str, seed: int) -> None:
    """A run that says the same class of every example."""
    labels = np.arange(EXAMPLES) % 2
    scores = np.tile(np.array([[1.0, 0.0]], dtype=np.float32), (EXAMPLES, 1))
    folder = made.folder(arm, seed)
    write_predictions(
        folder.predictions, {"test": Predictions(tuple(f"t{i}" for i in range(EXAMPLES)), labels, scores)}
    )
    result = read_sealed(folder.result)
    write_sealed(folder.result, {**result, "metrics": {"test": {"accuracy": 0.5}}})


def test_collapses_are_counted_compared_and_taken_out_for_a_second_verdict(tmp_path: Path) -> None:
    arms = {
        "baseline": ArmSpec([300, 304, 297, 301, 299]),
        "arm": ArmSpec([300, 304, 297, 301, 299], methods=FOCAL),
    }
    made = make_study(tmp_path, arms)
    collapse(made, "arm", 0)
    collapse(made, "arm", 1)
    results = made.results()
    found = results.collapses["arm"]
    assert (found.seeds, found.finished, found.other, found.other_finished) == ((0, 1), 5, 0, 5)
    assert found.p == pytest.approx(0.4444, abs=1e-3), "Fisher's exact test of 2 of 5 against none of 5"
    comparison = results.comparisons[0]
    assert comparison.without_collapsed is not None
    assert comparison.without_collapsed[0].n == 3
    text = str(results.verdict())
    assert "2 of 5 runs of arm did not learn" in text
    assert "Without the seeds in which a run did not learn (n = 3)" in text


def test_a_reference_that_did_not_learn_is_the_first_thing_said(tmp_path: Path) -> None:
    arms = {"baseline": ArmSpec([200, 199, 200]), "arm": ArmSpec([300, 304, 297], methods=FOCAL)}
    made = make_study(tmp_path, arms)
    home = tmp_path / "made"
    before = Caution("warning", "few-seeds", "seeds", "because", "Use more").as_json()
    write_study(home, {**read_sealed(home / "study.json"), "cautions": [before]})
    results = made.results()
    assert {"few-seeds", "not-learned"} <= {caution.code for caution in results.cautions}
    first = results.cautions[0]
    assert first.code == "not-learned"
    assert first.seen == "baseline is at the majority class: 49.9 %, always the same class has 50.0 %"
    assert "nothing that is compared with it compares methods" in first.why


def test_a_run_at_chance_is_collapsed_and_one_above_is_not(tmp_path: Path) -> None:
    made = make_study(tmp_path, {"baseline": ArmSpec([200, 201, 260])})
    runs = made.results().runs
    assert [is_collapsed(run) for run in runs] == [True, False, False]
    assert chance_score(runs[0].test, "accuracy", None) == 0.5
    assert chance_score(runs[0].test, "mcc", None) == 0


def test_curves_that_still_rise_are_named(tmp_path: Path) -> None:
    """The made event lines rise by 2.5 points at each of four evaluations."""
    arms = {"baseline": ArmSpec([300, 304, 297]), "arm": ArmSpec([310, 314, 306], methods=FOCAL)}
    codes = {caution.code: caution for caution in make_study(tmp_path, arms).results().cautions}
    assert "validation curves of baseline, arm were still rising" in codes["still-rising"].seen


def test_a_stored_figure_that_its_predictions_do_not_give_is_named(tmp_path: Path) -> None:
    made = make_study(tmp_path, {"baseline": ArmSpec([300, 304, 297]), "arm": ArmSpec([310, 314, 306], methods=FOCAL)})
    file = made.folder("arm", 1).result
    write_sealed(file, {**read_sealed(file), "metrics": {"test": {"accuracy": 0.9174}}})
    found = next(caution for caution in made.results().cautions if caution.code == "figures-disagree")
    assert "arm/seed-1: its result says accuracy 0.9174, its predictions 0.785" in found.seen
    assert "no multiple of 1/400" in found.seen


def test_runs_of_different_numbers_of_threads_are_told_apart(tmp_path: Path) -> None:
    made = make_study(tmp_path, {"baseline": ArmSpec([285, 289, 282]), "arm": ArmSpec([305, 335, 312], methods=FOCAL)})
    assert "mixed-threads" not in [caution.code for caution in made.results().cautions]
    file = made.folder("arm", 1).environment
    found = read_sealed(file)
    write_sealed(file, {**found, "torch": {**found["torch"], "threads": 1}})
    (caution,) = [caution for caution in made.results().cautions if caution.code == "mixed-threads"]
    assert caution.grade == "note"
    assert "different numbers of threads (5 with 2, 1 with 1)" in str(caution)


def test_runs_for_which_memory_ran_out_are_told_apart_and_their_times_too(tmp_path: Path) -> None:
    made = make_study(tmp_path, {"baseline": ArmSpec([285, 289, 282]), "arm": ArmSpec([305, 335, 312], methods=FOCAL)})
    assert "cut-batches" not in [caution.code for caution in made.results().cautions]
    assert cut_notes(made.results()) == []
    for seed in (0, 1):
        file = made.folder("arm", seed).result
        write_sealed(file, {**read_sealed(file), "micro_batch": 8})
    (caution,) = [caution for caution in made.results().cautions if caution.code == "cut-batches"]
    assert caution.grade == "warning"
    assert "baseline: 3 with whole batches; arm: 1 with whole batches, 2 with at most 8 examples at once" in str(
        caution
    )
    (note,) = cut_notes(made.results())
    assert "arm: 1 with whole batches, 2 with at most 8" in note
    for arm in ("baseline", "arm"):
        for seed in (0, 1, 2):
            file = made.folder(arm, seed).result
            write_sealed(file, {**read_sealed(file), "micro_batch": 8})
    assert "cut-batches" not in [caution.code for caution in made.results().cautions], "all alike"
