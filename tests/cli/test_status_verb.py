"""`fairtune status`: each metric in its own unit."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.ledger.folders import run_folder
from fairtune.ledger.seals import close_run
from fairtune.ledger.studies import write_study


def call(runs: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["status", *words, "--runs", str(runs)])
    assert done.exit_code == 0, done.output
    return done.stdout


def make_study(runs: Path, study: str, metric: str, scores: list[float | None]) -> None:
    """A study of one arm with finished runs of these scores; None leaves a run waiting."""
    planned: list[dict[str, Any]] = [
        {"position": seed, "arm": "baseline", "seed": seed, "key": f"k{seed}"} for seed in range(len(scores))
    ]
    compare = {"to": "baseline", "margin": None, "confidence": 0.95}
    plan = {
        "plan": "p",
        "study": study,
        "task": {"kind": "any", "metric": metric},
        "arms": {"baseline": {"control": None}},
    }
    write_study(runs / study, {**plan, "compare": compare, "runs": planned})
    for run, score in zip(planned, scores, strict=True):
        if score is not None:
            folder = run_folder(runs, study, "baseline", run["seed"])
            folder.write_plan(run)
            result = {"status": "finished", "metric": metric, "metrics": {"test": {metric: score}}}
            close_run(folder, run["key"], {**result, "seconds": {"total": 61.4}, "signature": "sig"})


@pytest.mark.parametrize(
    ("metric", "score", "heading", "shown"),
    [
        ("accuracy", 0.8421, "accuracy (%)", "84.21"),
        ("mcc", -0.0312, "MCC (× 100)", "−3.12"),
        ("perplexity", 4.2711, "perplexity", "4.271"),
        ("perplexity", 1096.63, "perplexity", "1,097"),
        ("bits_per_byte", 1.2, "bits per byte", "1.200"),
        ("loss", 1.45, "loss", "1.450"),
        ("token_accuracy", 0.5, "token accuracy (%)", "50.00"),
    ],
)
def test_a_score_is_shown_in_the_metrics_own_unit(
    tmp_path: Path, metric: str, score: float, heading: str, shown: str
) -> None:
    make_study(tmp_path, "toy", metric, [score, None])
    head, done, waiting = call(tmp_path, "toy").splitlines()
    assert heading in head
    assert done.split() == ["1", "baseline", "0", "finished", shown, "61"]
    assert waiting.split() == ["2", "baseline", "1", "waiting", "-", "-"]
    answer = json.loads(call(tmp_path, "toy", "--json"))["runs"]
    assert [(run["metric"], run["score"]) for run in answer] == [(metric, score), (None, None)], (
        "JSON has the plain number"
    )


def test_a_perplexity_beyond_all_numbers_is_shown_as_none(tmp_path: Path) -> None:
    make_study(tmp_path, "toy", "perplexity", [math.inf])
    assert call(tmp_path, "toy").splitlines()[1].split() == ["1", "baseline", "0", "finished", "-", "61"]


def test_one_study_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    make_study(tmp_path, "toy", "accuracy", [0.5, 0.6, None])
    make_study(tmp_path, "torn", "perplexity", [4.2])
    (tmp_path / "torn" / "study.json").write_text("{")
    found = json.loads(call(tmp_path, "--json"))
    assert found["studies"]["toy"]["finished"] == 2
    assert list(found["problems"]) == ["torn"]


def test_status_follows_what_happens_to_the_folders(tmp_path: Path) -> None:
    make_study(tmp_path, "toy", "accuracy", [0.5, 0.6])
    assert json.loads(call(tmp_path, "--json"))["studies"]["toy"]["finished"] == 2
    (run_folder(tmp_path, "toy", "baseline", 0).path / "result.json").unlink()
    (run_folder(tmp_path, "toy", "baseline", 1).path / "events.jsonl").write_text("{}\n")
    assert [run["status"] for run in json.loads(call(tmp_path, "toy", "--json"))["runs"]] == ["damaged", "damaged"]
    assert json.loads(call(tmp_path, "--json"))["studies"]["toy"]["damaged"] == 2
