"""The plan: order, keys, hashes, steps, and the audit of what differs besides methods."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fairtune.methods.registry import parse_method_use
from fairtune.settings.sections import Train
from fairtune.study.controls import Difference, arm_settings, find_controls, find_differences
from fairtune.study.plan import Plan, make_plan
from fairtune.study.schema import Study
from fairtune.study.study_file import load_study

ARMS: dict[str, Any] = {"baseline": {}, "fast": {"lr": 1e-4}, "oelm": {"lr": 1e-4, "methods": ["orthogonal_qk"]}}


@pytest.fixture
def source(tiny_model: Path, tiny_task: Any) -> dict[str, Any]:
    return {"study": "s", "task": tiny_task.as_study(), "model": str(tiny_model), "arms": ARMS, "seeds": 3}


def plan(source: dict[str, Any], *overrides: str) -> Plan:
    return make_plan(load_study(source, overrides))


def order(made: Plan) -> list[str]:
    return [run.name for run in made.runs]


def keys(made: Plan) -> dict[str, str]:
    return {run.name: run.key for run in made.runs}


def test_crossover_reverses_the_arms_from_seed_to_seed(source: dict[str, Any]) -> None:
    made = plan(source)
    assert [run.arm for run in made.runs] == [
        *["baseline", "fast", "oelm"],
        *["oelm", "fast", "baseline"],
        *["baseline", "fast", "oelm"],
    ]
    assert [run.seed for run in made.runs] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [run.position for run in made.runs] == list(range(9))
    assert [run.block for run in made.runs] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [run.arm for run in plan(source, "seeds=[9, 5]").runs][3:] == ["oelm", "fast", "baseline"], "by its place"


def test_sequential_goes_arm_by_arm(source: dict[str, Any]) -> None:
    made = plan(source, "order=sequential", "seeds=2")
    assert order(made) == [f"{arm}/seed-{seed}" for arm in ARMS for seed in (0, 1)]


def test_random_order_is_a_permutation_that_the_plan_decides(source: dict[str, Any]) -> None:
    first, again, other = (plan(source, "order=random", f"seeds={n}") for n in (6, 6, [0, 1, 2, 3, 4, 6]))
    assert order(first) == order(again)
    assert sorted(order(first)) == sorted(f"{arm}/seed-{seed}" for arm in ARMS for seed in range(6))
    assert order(first) != order(plan(source, "seeds=6"))
    assert [run.arm for run in first.runs] != [run.arm for run in other.runs], "another plan, another order"


def test_a_runs_key_does_not_depend_on_other_runs_or_on_where_it_runs(source: dict[str, Any]) -> None:
    few = keys(plan(source, "seeds=2"))
    for override in (
        "seeds=5",
        "seeds=[1, 0]",
        "execution.devices=cpu",
        "execution.checkpoint_every=7",
        "track=[tensorboard, mlflow]",
        "order=random",
        "study=another-name",
        "arms.extra.lr=1",
        "compare.margin=1%",
    ):
        more = keys(plan(source, override))
        assert {name: more[name] for name in few if name in more} == {name: few[name] for name in few if name in more}


def test_where_a_study_is_tracked_is_no_part_of_its_plan(source: dict[str, Any]) -> None:
    assert plan(source, "track={wandb: {offline: true}}").as_json() == plan(source).as_json()


@pytest.mark.parametrize("override", ["train.lr=1e-3", "train.epochs=2", "task.metric=mcc", "train.max_length=64"])
def test_a_runs_key_changes_with_what_decides_its_result(source: dict[str, Any], override: str) -> None:
    assert keys(plan(source, override))["baseline/seed-0"] != keys(plan(source))["baseline/seed-0"]


def test_keys_change_with_an_arms_own_settings_only_there(source: dict[str, Any]) -> None:
    before, after = keys(plan(source)), keys(plan(source, "arms.fast.lr=3e-4"))
    assert {name for name in before if before[name] != after[name]} == {f"fast/seed-{i}" for i in range(3)}
    assert len(set(before.values())) == len(before)


def test_keys_change_with_the_data_and_the_weights(source: dict[str, Any], tmp_path: Path, tiny_task: Any) -> None:
    model = Path(shutil.copytree(source["model"], tmp_path / "tiny-bert"))
    data = Path(shutil.copy(tiny_task.train, tmp_path / "train.csv"))
    here = (f"model={model}", f"task.train={data}")
    before = keys(plan(source, *here))
    assert keys(plan(source, *here)) == before

    data.write_text(data.read_text().replace("film", "book", 1))
    changed = keys(plan(source, *here))
    assert changed["fast/seed-0"] != before["fast/seed-0"]

    weights = bytearray((model / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (model / "model.safetensors").write_bytes(weights)
    assert keys(plan(source, *here))["fast/seed-0"] != changed["fast/seed-0"]


def test_the_plans_hash_is_stable_and_changes_with_seeds_and_comparison(source: dict[str, Any]) -> None:
    assert plan(source).hash == plan(source).hash
    assert plan(source).hash == plan(source, "execution.devices=cpu").hash
    hashes = [plan(source, *o).hash for o in ([], ["seeds=4"], ["compare.margin=1%"], ["order=random"])]
    assert len(set(hashes)) == 4


def test_a_signature_says_everything_about_a_run(source: dict[str, Any]) -> None:
    made = plan(source)
    run = made.runs[1]
    parts = dict(part.split(":", 1) for part in run.signature.split("|"))
    assert parts["task"] == f"toy@{made.task.fingerprint[:8]}"
    assert parts["model"].endswith(f"@{made.model.identity[:8]}")
    assert (parts["arm"], parts["seed"]) == ("fast", "0")
    assert (parts["run"], parts["plan"]) == (run.key, made.hash)
    assert {"fairtune", "protocol"} <= set(parts)


def test_a_plan_is_plain_json(source: dict[str, Any]) -> None:
    made = plan(source, "compare.margin=1.5%")
    data = json.loads(json.dumps(made.as_json()))
    assert data["plan"] == made.hash
    assert data["compare"] == {"to": "baseline", "margin": "1.5%", "confidence": 0.95}
    assert data["arms"]["oelm"]["methods"] == [parse_method_use("orthogonal_qk").as_json()]
    assert data["arms"]["fast"]["train"]["lr"] == 1e-4
    assert len(data["runs"]) == 9
    assert data["task"]["rows"] == {"train": 200, "validation": 60, "test": 60}
    assert data["differences"][0]["text"] == str(made.differences[0])


def differences(study: Study) -> tuple[Difference, ...]:
    arms = arm_settings(study)
    return find_differences(arms, find_controls(arms, study.compare.to), study.compare.to, {})


def test_the_audit_lists_every_difference_that_is_no_method_and_names_the_control(source: dict[str, Any]) -> None:
    study = load_study({**source, "arms": {**ARMS, "odd": {"lr": 1e-3, "batch_size": 4, "methods": ["orthogonal_qk"]}}})
    found = {(d.arm, d.setting): d for d in differences(study)}
    assert set(found) == {("fast", "lr"), ("oelm", "lr"), ("odd", "lr"), ("odd", "batch_size")}
    assert found["oelm", "lr"].control == "fast"
    assert str(found["oelm", "lr"]) == "oelm: lr is 0.0001, baseline has 2e-05; like with like: compare with fast"
    assert found["odd", "batch_size"].control is None
    assert "cannot be told apart" in str(found["odd", "lr"])
    assert "itself the control" in str(found["fast", "lr"])


@pytest.mark.parametrize(
    ("settings", "examples", "steps"),
    [
        ({"epochs": 3, "batch_size": 32}, 320, 30),
        ({"epochs": 3, "batch_size": 32}, 321, 33),
        ({"epochs": 0.5, "batch_size": 10}, 100, 5),
        ({"epochs": 1.25, "batch_size": 10}, 100, 12),
        ({"steps": 7}, 10_000, 7),
        ({"epochs": 2, "batch_size": 10, "accumulate": 4}, 100, 6),
        ({"epochs": 1, "batch_size": 10, "examples": 55}, 100, 6),
    ],
)
def test_steps_count_optimizer_steps(settings: dict[str, Any], examples: int, steps: int) -> None:
    assert Train(**settings).total_steps(examples) == steps


SOM = {"bpsom": {"grid": 5}}
OBSERVER = {"bpsom": {"grid": 5, "alpha": 0, "prune": None}}


@pytest.mark.parametrize(
    ("arms", "to", "controls"),
    [
        (ARMS, "baseline", {"baseline": None, "fast": None, "oelm": "fast"}),
        (
            {**ARMS, "som": {"lr": 1e-4, "methods": [SOM]}, "look": {"lr": 1e-4, "methods": [OBSERVER]}},
            "baseline",
            {"baseline": None, "fast": None, "oelm": "fast", "som": "look", "look": "fast"},
        ),
        (
            {"look": {"methods": [OBSERVER]}, "som": {"methods": [SOM]}, "plain": {"methods": []}},
            "look",
            {"look": "plain", "som": "look", "plain": None},
        ),
        ({"a": {"methods": ["fgm"]}, "b": {"methods": ["pgd"]}}, "a", {"a": None, "b": None}),
        (
            {"a": {"methods": ["fgm"]}, "b": {"methods": ["pgd"]}, "plain": {"methods": []}},
            "a",
            {"a": "plain", "b": None, "plain": None},
        ),
    ],
)
def test_the_plan_decides_each_arms_control_and_the_audit_says_the_same(
    source: dict[str, Any], arms: dict[str, Any], to: str, controls: dict[str, str | None]
) -> None:
    made = plan({**source, "arms": arms, "compare": {"to": to}})
    assert {arm: facts["control"] for arm, facts in made.as_json()["arms"].items()} == controls
    for difference in made.differences:
        own = controls[difference.arm] if made.study.methods(difference.arm) else difference.arm
        assert difference.control == own


def test_the_plan_says_which_arms_are_idle_and_what_a_step_costs(source: dict[str, Any]) -> None:
    arms = {"baseline": {}, "look": {"methods": [OBSERVER]}, "both": {"methods": ["fgm", OBSERVER]}}
    found = plan({**source, "arms": arms}).as_json()["arms"]
    assert {arm: (facts["idle"], facts["step_factor"]) for arm, facts in found.items()} == {
        "baseline": (False, 1.0),
        "look": (True, 1.0),
        "both": (False, 2.0),
    }
