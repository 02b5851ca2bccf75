"""Arms that are added: the control that an arm lacks, under a readable name, and a copy of the reference with other luck."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.settings.values import LARGEST_SEED
from fairtune.study.controls import copy_seeds
from fairtune.study.plan import Plan, make_plan
from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml

ARMS: dict[str, Any] = {
    "baseline": {},
    "focal": {"lr": 1.5e-4, "methods": ["focal"]},
    "fgm": {"lr": 1.5e-4, "methods": ["fgm"]},
    "pgd": {"batch_size": 8, "schedule": "constant", "methods": ["pgd"]},
    "ema": {"methods": ["ema"]},
}
ADDED = {
    "baseline-lr-15e-5": "baseline-lr-15e-5: {lr: 1.5e-4}",
    "baseline-batch-size-8-schedule-constant": (
        "baseline-batch-size-8-schedule-constant: {batch_size: 8, schedule: constant}"
    ),
}


@pytest.fixture
def source(tiny_model: Path, tiny_task: Any) -> dict[str, Any]:
    return {"study": "s", "task": tiny_task.as_study(), "model": str(tiny_model), "arms": ARMS, "seeds": 3}


def plan(source: dict[str, Any], **changes: Any) -> Plan:
    return make_plan(load_study({**source, **changes}))


def test_controls_are_added_once_for_arms_of_the_same_settings(source: dict[str, Any]) -> None:
    made = plan(source, controls=True)
    assert list(made.study.arms) == [*ARMS, *ADDED]
    assert made.added == ADDED
    assert made.as_json()["added"] == ADDED
    assert made.controls["focal"] == made.controls["fgm"] == "baseline-lr-15e-5"
    assert made.primaries["pgd"] == "baseline-batch-size-8-schedule-constant"
    assert [use.name for arm in ADDED for use in made.study.methods(arm)] == []


def test_the_lines_to_add_make_the_same_study(source: dict[str, Any]) -> None:
    pasted = parse_yaml("\n".join(ADDED.values())).data
    written, added = plan(source, arms={**ARMS, **pasted}), plan(source, controls=True)
    assert written.hash == added.hash
    assert written.added == {}
    assert plan(source, arms={**ARMS, **pasted}, controls=True).hash == added.hash, "nothing is missing any more"


def test_names_do_not_clash_and_stay_readable(source: dict[str, Any]) -> None:
    arms = {
        "baseline": {},
        "Baseline-lr-1e-4": {"lr": 1e-3, "methods": ["ema"]},
        "focal": {"lr": 1e-4, "methods": ["focal"]},
        "odd": {"lr": 1e-4, "batch_size": 8, "clip": None, "betas": [0.9, 0.98], "methods": ["fgm"]},
    }
    made = plan(source, arms=arms, controls=True)
    assert list(made.added) == ["baseline-lr-1e-3", "baseline-lr-1e-4-2", "baseline-for-odd"]
    assert made.added["baseline-for-odd"] == (
        "baseline-for-odd: {lr: 1e-4, batch_size: 8, betas: [0.9, 0.98], clip: null}"
    )
    assert made.controls["odd"] == "baseline-for-odd"


def test_a_control_starts_from_the_same_model(source: dict[str, Any], tiny_model: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_model, tmp_path / "other"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_dropout_prob": 0.2}))
    made = plan(source, arms={"baseline": {}, "ema": {"model": str(folder), "methods": ["ema"]}}, controls=True)
    (name,) = made.added
    assert made.models[name].identity == made.models["ema"].identity != made.model.identity
    assert made.controls["ema"] == name


def test_the_verb_adds_controls_and_prints_their_lines(source: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(yaml.safe_dump(source, sort_keys=False))
    shown = CliRunner().invoke(app, ["plan", str(file), "--add-controls"])
    assert shown.exit_code == 0
    assert "Added controls: for the file, under `arms`:" in shown.output
    assert all(f"  {line}\n" in shown.output for line in ADDED.values())
    answer = json.loads(CliRunner().invoke(app, ["plan", str(file), "--add-controls", "--json"]).stdout)
    assert answer["added"] == ADDED
    assert "Added controls" not in CliRunner().invoke(app, ["plan", str(file)]).output


def test_a_copy_of_the_reference_makes_pairs_with_it_but_has_other_luck(source: dict[str, Any]) -> None:
    without, made = plan(source), plan(source, aa=True)
    again = [run for run in made.runs if run.arm == "baseline-again"]
    assert sorted(run.seed for run in again) == [0, 1, 2], "the same names, so that pairs are made"
    assert sorted(run.settings.as_json()["seed"] for run in again) == [1_000_000, 1_000_001, 1_000_002]
    first = next(run for run in made.runs if run.name == "baseline/seed-0")
    copied = next(run for run in again if run.seed == 0)
    assert copied.settings.model_copy(update={"seed": 0}) == first.settings
    assert len({run.key for run in made.runs}) == len(made.runs)
    assert {run.name: run.key for run in without.runs}.items() <= {run.name: run.key for run in made.runs}.items()
    facts = made.as_json()["arms"]
    assert facts["baseline-again"]["copy_of"] == "baseline"
    assert facts["baseline-again"]["control"] == facts["baseline-again"]["primary"] == "baseline"
    assert not any("copy_of" in facts[arm] for arm in ARMS)
    assert facts["ema"]["primary"] == "baseline", "nobody is compared with the copy"


def test_a_copy_of_a_reference_with_methods_has_them(source: dict[str, Any]) -> None:
    made = plan(source, aa=True, compare={"to": "ema"})
    assert made.study.methods("ema-again") == made.study.methods("ema") != ()
    assert made.controls["ema-again"] == "ema"


def test_no_run_of_another_arm_draws_from_the_same_number() -> None:
    for seeds in ([0, 1_000_000], [LARGEST_SEED, 0], [5, 1_000_005, 2_000_005]):
        found = copy_seeds(seeds)
        assert list(found) == seeds
        assert not set(found.values()) & set(seeds)
        assert len(set(found.values())) == len(seeds)
        assert all(0 <= seed <= LARGEST_SEED for seed in found.values())
    assert copy_seeds([0, 7]) == {0: 1_000_000, 7: 1_000_007}
