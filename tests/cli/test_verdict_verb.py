"""`fairtune verdict`, and `fairtune run` with its ways of adding seeds, forcing and analysing anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.execution.made_runs import study_of
from tests.report.made_ledger import STUDY, usual_ledger
from typer.testing import CliRunner

from fairtune import load_results, run_study
from fairtune.api import seeds_up_to
from fairtune.cli.app import app
from fairtune.core.errors import FairtuneError
from fairtune.ledger.studies import read_plans


def call(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, done.output
    return done.stdout


def test_the_page_can_be_read_aloud(tmp_path: Path) -> None:
    usual_ledger(tmp_path)
    text = " ".join(call("verdict", STUDY, "--runs", str(tmp_path)).split())
    assert text.startswith(
        f"{STUDY}: made-task, minilm, accuracy 11 of 15 runs are finished and 1 failed; so far no method is shown to be better"
    )
    assert " Planned on 20" in text
    assert "baseline: the reference of all comparisons: accuracy 84.00 %" in text
    assert "oelm-freeze: inferior to baseline-fast by" in text
    assert "Traceback" not in text


def test_the_page_as_data(tmp_path: Path) -> None:
    usual_ledger(tmp_path)
    found = json.loads(call("verdict", STUDY, "--runs", str(tmp_path), "--json"))
    findings = {finding["arm"]: finding for finding in found["findings"]}
    assert findings["oelm-freeze"]["against"] == "baseline-fast"
    assert {"grade", "code", "seen", "why", "do", "text"} <= set(found["cautions"][0])
    assert json.loads(json.dumps(load_results(tmp_path, STUDY).verdict().as_json())) == found


def test_a_study_that_is_not_there(tmp_path: Path) -> None:
    call("verdict", "nothing", "--runs", str(tmp_path), code=2)


def test_seeds_are_added_after_those_that_are_named() -> None:
    assert seeds_up_to((0, 1, 2), 5) == (0, 1, 2, 3, 4)
    assert seeds_up_to((7, 0), 4) == (7, 0, 1, 2)
    assert seeds_up_to((0, 1, 2, 3, 4), 3) == (0, 1, 2)


@pytest.mark.usefixtures("performed_here", "undrawn")
def test_looks_are_taken_until_all_is_decided(tmp_path: Path, tiny_model: Path, tiny_task: Any) -> None:
    """Twenty test examples do not tell these two arms apart, so every look is taken."""
    study = {**study_of(tiny_model, tiny_task, {"baseline": [], "arm": [{"focal": {"gamma": 0.1}}]}), "seeds": 3}
    results = run_study(study, runs=tmp_path / "runs", progress=False, until_decided=True, max_seeds=5)
    assert [len(plan["seeds"]) for plan in read_plans(tmp_path / "runs" / "toy")] == [3, 5]
    assert results.registration.planned_looks
    assert [c.looks for c in results.comparisons] == [(3,)]
    assert (results.registration.most, results.registration.changes) == (5, ())
    assert "Verdicts could be taken before, at 3 seeds, as planned" in str(results.verdict())


def test_flags_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text("study: toy\ntask: movie-reviews\nmodel: minilm\narms: {baseline: {}}\n")
    contrary = ["--max-seeds", "8"], ["--until-decided", "--reanalyse"], ["--until-decided", "--max-seeds", "2"]
    for words in (*contrary, ["--address", "auto"]):
        call("run", str(file), "--runs", str(tmp_path / "runs"), *words, code=2)
    with pytest.raises(FairtuneError, match="must be at least"):
        run_study(file, runs=tmp_path / "runs", until_decided=True, max_seeds=2)


def test_a_report_of_some_arms_says_so_first_and_leaves_the_whole_one_alone(tmp_path: Path) -> None:
    usual_ledger(tmp_path)
    call("report", STUDY, "--runs", str(tmp_path))
    whole = (tmp_path / STUDY / "report" / "index.html").read_bytes()
    said = " ".join(call("report", STUDY, "--arms", "focal", "--runs", str(tmp_path)).split())
    assert "But mind: 2 of 5 arms are shown" in said.split("plan:")[0]
    assert "5 arms x 3 seeds, 11 of 15 runs finished" in said
    assert (tmp_path / STUDY / "report" / "index.html").read_bytes() == whole
    some = (tmp_path / STUDY / "report" / "some-arms" / "report.md").read_text()
    assert "| focal |" in some
    assert "| oelm-freeze |" not in some
