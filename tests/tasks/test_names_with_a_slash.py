"""A task called `xnli/de` or `xnli/de/translate-train` goes through plan, runs, ledger and report like any other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml
from made_mirror import make_inference, pairs, write_split


def test_a_study_of_one_language_is_run_and_reported(tmp_path: Path, tiny_model: Path) -> None:
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
    environment = {**os.environ, "FAIRTUNE_MIRROR": str(mirror)}

    def fairtune(*words: str) -> str:
        command = [sys.executable, "-m", "fairtune", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=250)
        assert done.returncode == 0, done.stdout + done.stderr
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
