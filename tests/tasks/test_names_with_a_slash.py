"""A task called `xnli/de` or `xnli/de/translate-train` goes through plan, runs, ledger and report like any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from made_mirror import make_inference, pairs, write_split
from typer.testing import CliRunner

from fairtune.cli.app import app


@pytest.mark.usefixtures("performed_here", "undrawn")
def test_a_study_of_one_language_is_run_and_reported(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = {
        "study": "german",
        "task": "xnli/de",
        "model": str(tiny_model),
        "train": {"steps": 2, "batch_size": 8, "max_length": 16},
        "seeds": 2,
        "arms": {"baseline": {}, "frozen": {"methods": [{"orthogonal_qk": {"init": "keep"}}]}},
        "execution": {"devices": "cpu", "save_model": False},
    }
    (tmp_path / "german.yaml").write_text(yaml.safe_dump(study))
    mirror = make_inference(tmp_path / "mirror")
    write_split(mirror, "xnli/de", "train", pairs("maschine", 30))
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(mirror))
    monkeypatch.chdir(tmp_path)

    def fairtune(*words: str) -> str:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        return done.stdout

    plan = json.loads(fairtune("plan", "german.yaml", "--json"))["task"]
    assert plan["name"] == "xnli/de"
    other = json.loads(fairtune("plan", "german.yaml", "--json", "--set", "task=xnli/de/translate-train"))["task"]
    assert other["name"] == "xnli/de/translate-train"
    assert other["hashes"]["train"] != plan["hashes"]["train"]
    assert other["hashes"]["test"] == plan["hashes"]["test"], "splits are recorded by their hash"
    fairtune("run", "german.yaml", "--runs", "runs")
    folder = tmp_path / "runs" / "german"
    assert (folder / "frozen" / "seed-1" / "predictions.parquet").is_file()
    signature = json.loads((folder / "baseline" / "seed-0" / "plan.json").read_text())["signature"]
    assert "|task:xnli/de@" in signature
    (report,) = folder.rglob("*.html")
    assert "xnli/de" in report.read_text(encoding="utf-8")
    assert "local mirror; test split; trained on mnli" in report.read_text(encoding="utf-8")
