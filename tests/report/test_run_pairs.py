"""Two runs side by side: what differs in settings, machines, curves and predictions; and what cannot be told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.hostile import ALL, on_a_terminal, raw_codes
from tests.report.made_ledger import EXAMPLES, STUDY, MadeLedger, usual_ledger
from tests.report.made_pairs import made_pair
from tests.report.test_study_pairs import invoke
from tests.sealed import close_again, close_all

from fairtune.analysis.run_pairs import compare_runs
from fairtune.core.errors import LedgerError
from fairtune.core.files import read_json, write_json
from fairtune.ledger.predictions import EXAMPLES_FILE, AboutExamples, Examples, write_examples
from fairtune.report.run_pairs import run_pair_json, run_pair_table, score_differences, sparklines


@pytest.fixture
def made(tmp_path: Path) -> MadeLedger:
    return usual_ledger(tmp_path / "runs")


def name(arm: str, seed: int) -> str:
    return f"{STUDY}/{arm}/seed-{seed}"


def keep_texts(made: MadeLedger, text: str = "a text") -> None:
    ids = tuple(f"t{number}" for number in range(EXAMPLES))
    texts = tuple((f"{text} {number}",) for number in range(EXAMPLES))
    kept = Examples(ids, texts, np.arange(EXAMPLES) % 2, (None,) * EXAMPLES, np.full(EXAMPLES, 3, dtype=np.int32))
    write_examples(made.runs / STUDY / EXAMPLES_FILE, AboutExamples("key", {"test": EXAMPLES}), {"test": kept})


def test_settings_scores_and_predictions_that_differ(made: MadeLedger) -> None:
    keep_texts(made)
    found = compare_runs(name("baseline", 0), name("oelm-freeze", 1), made.runs)
    settings = {one.name: one.values for one in found.settings}
    assert settings["train.lr"] == ("2e-05", "0.0001")
    assert settings["seed"] == ("0", "1")
    assert settings["methods"] == ("none", "orthogonal_qk")
    assert settings["orthogonal_qk.init"] == ("–", "headwise")
    assert score_differences(found)["accuracy"] == pytest.approx((262 - 336) / EXAMPLES)
    pair = found.predictions
    assert pair is not None
    runs = [made.results().finished(arm)[seed].test for arm, seed in (("baseline", 0), ("oelm-freeze", 1))]
    right = [run.predicted == run.labels for run in runs]  # type: ignore[union-attr]
    counts = [(right[0] & right[1]).sum(), (right[0] & ~right[1]).sum(), (~right[0] & right[1]).sum()]
    assert [pair.both_right, pair.first_right, pair.second_right] == counts
    assert pair.both_right + pair.first_right + pair.second_right + pair.both_wrong == pair.n == EXAMPLES
    assert pair.differing == pair.first_right + pair.second_right, "of two classes"
    first = pair.examples[0]
    assert first.texts == (f"a text {first.id[1:]}",)
    assert {first.label, *first.answers} == {"no", "yes"}


def test_curves_stand_side_by_side_and_unlike_losses_have_scales_of_their_own(made: MadeLedger) -> None:
    found = compare_runs(name("baseline", 0), name("baseline", 1), made.runs)
    curves = {curve.name: curve for curve in found.curves}
    assert [step for step, *_ in curves["validation accuracy"].points] == [5, 10, 15, 20]
    assert curves["training loss"].points[-1][0] == 20
    assert curves["training loss"].alike
    ours, theirs = sparklines(curves["training loss"])
    assert (ours[0], theirs[0]) != (ours[-1], theirs[-1])
    assert not compare_runs(name("baseline", 0), name("oelm-freeze", 0), made.runs).curves[0].alike


def test_equal_runs_are_called_equal_and_weights_go_by_their_sums(made: MadeLedger) -> None:
    made.predict("baseline", 1, 336)
    for seed, content in ((0, b"same"), (1, b"same"), (2, b"other")):
        folder = made.folder("baseline", seed)
        (folder.path / "model").mkdir()
        (folder.path / "model" / "model.safetensors").write_bytes(content)
        if seed == 1:
            folder.predictions.write_bytes(made.folder("baseline", 0).predictions.read_bytes())
        close_again(folder)
    found = compare_runs(name("baseline", 0), name("baseline", 1), made.runs)
    assert found.predictions is not None
    assert found.predictions.same_scores
    assert not found.predictions.differing
    assert found.weights == "the same to the bit"
    assert compare_runs(name("baseline", 0), name("baseline", 2), made.runs).weights == "different"
    assert "not on record" in compare_runs(name("baseline", 0), name("oelm-freeze", 0), made.runs).weights


def test_environments_that_differ(made: MadeLedger) -> None:
    folder = made.folder("baseline", 1)
    write_json(folder.environment, {**(read_json(folder.environment) or {}), "cpu": "another CPU"})
    close_all(made.runs / STUDY)
    found = compare_runs(name("baseline", 0), name("baseline", 1), made.runs)
    assert [(one.name, one.values) for one in found.environment] == [("cpu", ("a CPU", "another CPU"))]


def test_failed_damaged_and_unfinished_runs_are_said_so(made: MadeLedger) -> None:
    failed = compare_runs(name("baseline", 0), name("focal", 1), made.runs)
    assert failed.predictions is None
    assert "failed (the loss is nan at step 3 of 20)" in failed.untold[0]
    made.folder("baseline", 1).predictions.write_bytes(b"changed")
    damaged = compare_runs(name("baseline", 0), name("baseline", 1), made.runs)
    assert "damaged (predictions.parquet was changed" in damaged.untold[0]
    assert damaged.runs[1].scores == {}
    made.folder("baseline", 2).result.unlink()
    made.folder("baseline", 2).manifest.unlink()
    open_one = compare_runs(name("baseline", 2), name("baseline", 0), made.runs)
    assert "interrupted" in open_one.untold[0]
    assert open_one.curves, "what it recorded is shown"


def test_runs_of_other_tasks_and_of_other_examples_say_so(tmp_path: Path) -> None:
    one, two = made_pair(tmp_path)
    folder = two.folder("baseline", 0)
    plan = read_json(folder.plan) or {}
    plan["settings"]["task"] = {"name": "other-task", "fingerprint": "e" * 64, "metric": "accuracy"}
    write_json(folder.plan, plan)
    close_all(two.runs / STUDY)
    found = compare_runs(one.folder("baseline", 0).path, folder.path, tmp_path)
    assert [run.name for run in found.runs] == ["one/made/baseline/seed-0", "two/made/baseline/seed-0"]
    assert "different tasks" in found.untold[0]
    assert not found.curves
    assert score_differences(found) == {}


def test_the_same_run_twice_is_refused(made: MadeLedger) -> None:
    with pytest.raises(LedgerError, match="same run"):
        compare_runs(name("baseline", 0), made.folder("baseline", 0).path, made.runs)


def test_the_verb_shows_a_page_of_the_terminal_and_json(made: MadeLedger) -> None:
    words = ("compare", name("baseline", 0), name("focal", 0), "--runs", made.runs)
    code, shown = invoke(*words)
    assert code == 0, shown
    for text in (
        "Settings that differ",
        "training loss",
        "test score",
        "get another class",
        "Weights:",
        "luck of a seed",
    ):
        assert text in " ".join(shown.split())
    code, shown = invoke(*words, "--json")
    content = json.loads(shown)
    assert content["predictions"]["n"] == EXAMPLES
    assert content["differences"]["accuracy"] == pytest.approx(7 / EXAMPLES)
    code, shown = invoke(*words, "-o", made.runs)
    assert code == 2
    assert "-o is for studies" in shown


def test_hostile_texts_are_shown_and_not_obeyed(made: MadeLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_texts(made, ALL)
    folder = made.folder("baseline", 1)
    write_json(folder.environment, {**(read_json(folder.environment) or {}), "cpu": ALL})
    close_all(made.runs / STUDY)
    shown = on_a_terminal(("compare", name("baseline", 0), name("baseline", 1), "--runs", made.runs), monkeypatch)
    assert raw_codes(shown) == []
    assert "[red]" in shown
    found = compare_runs(name("baseline", 0), name("baseline", 1), made.runs)
    assert run_pair_json(found)["predictions"]["examples"][0]["texts"]
    assert run_pair_table(found)
