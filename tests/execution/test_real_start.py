"""Python that a user starts, and the workers that it starts, with nothing imported beforehand: the only such study in the suite."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairtune.testing.runs import toy_source
from tests.made_plugin import ADDS, install

pytestmark = pytest.mark.slow
SCRIPT = """
import fairtune
results = fairtune.run_study('study.yaml', runs='runs', allow_plugins=True)
print(results.table().to_json())
print(fairtune.load_results('runs', 'toy'))
"""
POINTS = (
    "[fairtune.methods]\nlookahead = fairtune_example.lookahead\n[fairtune.tasks]\nweather = fairtune_example.weather\n"
)


@pytest.fixture(scope="module")
def folder(tiny_model: Path, tiny_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the script was run: a task and a method of an installed plug-in, a method of a file beside the study."""
    folder = tmp_path_factory.mktemp("started")
    (folder / "mine.py").write_text(ADDS.format(name="nothing"))
    source = toy_source(tiny_model, tiny_task) | {"task": "weather", "plugins": ["mine"], "seeds": 1}
    source["train"] |= {"steps": 2, "eval_examples": 20}
    source["arms"] = {"baseline": {}, "mine": {"methods": ["nothing", {"lookahead": {"every": 1}}]}}
    (folder / "study.yaml").write_text(yaml.safe_dump(source, sort_keys=False))
    (folder / "three.py").write_text(SCRIPT)
    site = install(folder / "site", POINTS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "three.py"], cwd=folder, capture_output=True, text=True, timeout=280, env=environment
    )
    assert done.returncode == 0, done.stderr
    (folder / "shown.txt").write_text(done.stdout)
    return folder


def test_three_lines_of_python_need_no_main_guard(folder: Path) -> None:
    table, shown = (folder / "shown.txt").read_text().strip().splitlines()
    assert set(json.loads(table)["n"].values()) == {1}
    assert "no verdict" in json.loads(table)["verdict"]["mine"]
    assert "2 of 2 runs finished" in shown


def test_an_installed_plugin_runs_in_real_workers(folder: Path) -> None:
    run = folder / "runs" / "toy" / "mine" / "seed-0"
    assert json.loads((run / "result.json").read_text())["status"] == "finished"
    recorded = json.loads((run / "plan.json").read_text())
    assert "|plugin:mine@" in recorded["signature"]
    assert "|plugin:fairtune-example@0.1.0|" in recorded["signature"]
    assert {"fairtune-example", None} == {one.get("distribution") for one in recorded["settings"]["plugins"]}

    assert recorded["settings"]["task"]["name"] == "weather"
    plain = json.loads((run.parents[1] / "baseline" / "seed-0" / "plan.json").read_text())
    assert "|plugin:fairtune-example@0.1.0|" in plain["signature"], "its task is everybody's"
    assert "|plugin:mine@" not in plain["signature"]
