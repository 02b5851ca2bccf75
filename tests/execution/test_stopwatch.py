"""The timing experiment: all arms in one process, in turns on the same batches, with the reference twice; and a real session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairtune import load_results, run_study, time_study
from fairtune.analysis.verification import verify_study
from fairtune.api import timed_arms
from fairtune.cli.app import app
from fairtune.core.errors import FairtuneError
from fairtune.execution.executors.memory_estimate import estimate_memory
from fairtune.execution.executors.slots import device_gpu
from fairtune.execution.stopwatch import machine_watch, session, worker
from fairtune.execution.stopwatch.groups import group_arms
from fairtune.execution.stopwatch.machine_watch import MachineWatch
from fairtune.execution.stopwatch.session import make_jobs
from fairtune.execution.stopwatch.worker import TimedArm, prepare_arms, rounds
from fairtune.ledger.timings import AGAIN, FIELDS, read_sessions
from fairtune.study.plan import Plan, make_plan
from fairtune.study.study_file import load_study
from tests import warm
from tests.execution.made_runs import study_of
from tests.fake_nvml import GB, use_fake

TURN = 0.02
"""Seconds of a turn, for tests of all but how precise a ratio is."""
BRIEF_WORKER = (
    sys.executable, "-c",
    f"from fairtune.execution.stopwatch import worker; worker.TURN_SECONDS = {TURN}; worker.main()",
)  # fmt: skip
QK = [{"orthogonal_qk": {"init": "keep"}}]


@pytest.fixture
def plan(tiny_model: Path, tiny_task: Any) -> Plan:
    study = study_of(tiny_model, tiny_task, {"baseline": [], "frozen": QK, "other": []})
    study["arms"]["other"]["lr"] = 2e-3
    return make_plan(load_study(study), force=True)


@pytest.fixture
def arms(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[TimedArm]:
    monkeypatch.setattr(worker, "TURN_SECONDS", TURN)
    return prepare_arms(make_jobs(plan, ["baseline", "frozen"], tmp_path), "cpu")


def some_rounds(arms: list[TimedArm], count: int) -> list[dict[str, Any]]:
    ended, found = threading.Event(), []
    for one in rounds(arms, ended):
        found.append(one)
        if len(found) == count:
            ended.set()
    return found


def test_the_reference_is_there_twice_and_every_arm_takes_two_turns(arms: list[TimedArm]) -> None:
    assert [arm.name for arm in arms] == ["baseline", "frozen", AGAIN]
    found = some_rounds(arms, 6)
    assert [one["warm"] for one in found[:2]] == [False, False], "the first rounds do not count"
    assert found[-1]["warm"]
    for one in found:
        assert sorted(one["order"]) == sorted(["baseline", "frozen", AGAIN])
        assert {name: len(turns) for name, turns in one["turns"].items()} == dict.fromkeys(one["turns"], 2)
    assert len({tuple(one["order"]) for one in found}) > 1, "the order is drawn anew"


def test_all_arms_step_through_the_same_batches_also_beyond_the_end_of_a_run(arms: list[TimedArm]) -> None:
    """A run of this study has 3 steps; timing begins again after them, and never scores anything."""
    found = some_rounds(arms, 4)
    for one in found:
        tokens = [[turn["tokens"] for turn in turns] for turns in one["turns"].values()]
        assert tokens[0] == tokens[1] == tokens[2]
    assert all("validation" not in arm.run.clock.seconds for arm in arms)
    assert all(arm.run.progress.step <= 3 for arm in arms)


def test_a_step_is_taken_apart_and_its_parts_are_within_it(arms: list[TimedArm]) -> None:
    turn = some_rounds(arms, 2)[-1]["turns"]["baseline"][0]
    parts = [turn[name] for name in ("data", "forward", "backward", "optimizer")]
    assert all(part > 0 for part in parts)
    assert sum(parts) <= turn["wall"] * 1.001


def test_memory_is_counted_the_same_way_for_all(arms: list[TimedArm]) -> None:
    some_rounds(arms, 2)
    peaks = {arm.name: arm.memory["peak_bytes"] for arm in arms}
    assert peaks["baseline"] == peaks[AGAIN]
    assert peaks["frozen"] < peaks["baseline"]
    assert arms[1].describe()["parameters"]["trainable"] < arms[0].describe()["parameters"]["trainable"]


def test_arms_bring_those_they_are_compared_with(plan: Plan) -> None:
    assert timed_arms(plan, []) == ["baseline", "frozen", "other"]
    assert timed_arms(plan, ["frozen"]) == ["baseline", "frozen"]
    with pytest.raises(FairtuneError, match=r"no arm 'frozn'; its arms: baseline, frozen.*Did you mean 'frozen'"):
        timed_arms(plan, ["frozn"])


def test_where_memory_is_short_arms_are_timed_in_groups_beside_those_they_are_compared_with(plan: Plan) -> None:
    arms = ["baseline", "frozen", "other"]
    a_run = estimate_memory(make_jobs(plan, arms, Path())["baseline"])
    assert group_arms(plan, arms) == [arms], "a small model's arms all fit"
    assert group_arms(plan, arms, room=6 * a_run) == [arms]
    assert group_arms(plan, arms, room=4 * a_run) == [["baseline", "frozen"], ["baseline", "other"]]
    assert group_arms(plan, arms, room=a_run) == [["baseline", "frozen"], ["baseline", "other"]], "no fewer than a pair"


def test_the_process_that_is_timed_is_started_as_a_module() -> None:
    done = warm.warm_run([*session.WORKER, "cpu", "1"], input="{}\n", text=True)
    assert json.loads(done.stdout.splitlines()[0]) == {"type": "ready", "arms": {}}, done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("performed_here", "undrawn")
def test_a_study_that_says_so_is_timed_once_its_runs_are_finished(
    tmp_path: Path, tiny_model: Path, tiny_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real process, timed; then everything that is made of it."""
    monkeypatch.setattr(subprocess, "Popen", warm._dispatch)
    monkeypatch.setattr(session, "WORKER", BRIEF_WORKER)
    study = study_of(tiny_model, tiny_task, {"baseline": [], "frozen": QK}) | {"time": {"minutes": 0.02}, "seeds": 2}
    runs = tmp_path / "runs"
    results = run_study(study, runs=runs, progress=False, force=True)
    timing = results.timing
    assert timing is not None
    assert list(timing.arms) == ["baseline", "frozen"]
    assert timing.rounds >= 12
    assert 0.2 < timing.ratios["frozen"].found.ratio < 5
    assert timing.again.n == timing.rounds
    (record,), damaged = read_sessions(runs / "toy")
    assert (damaged, record["warm_up"] >= 2) == ([], True)
    assert {"data", "forward", "backward", "optimizer"} <= set(record["rounds"][0]["turns"]["baseline"][0])
    run_study(study, runs=runs, progress=False, force=True)
    assert len(read_sessions(runs / "toy")[0]) == 1, "what was timed is not timed again"
    time_study(study, runs=runs, arms=["frozen"], minutes=0.01, progress=False, force=True)
    assert load_results(runs, "toy").timing.sessions == 2  # type: ignore[union-attr]
    own = json.loads((runs / "toy" / "baseline" / "seed-0" / "timing.json").read_text())
    assert set(own) == {*FIELDS, "total_formatted"}
    assert own["total_seconds"] > own["per_step_avg"] > 0
    assert verify_study(runs, "toy").sound
    path = next((runs / "toy" / "timing").glob("*.json"))
    path.write_text(path.read_text().replace('"threads": 1', '"threads": 2'))
    assert any(path.name in problem for problem in verify_study(runs, "toy").problems)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["time"], "give the file of a study, or --check"),
        (["time", "--check", "fast", "--model", "minilm", "--arm", "oelm-freeze"], "such as 1.3x"),
        (
            ["time", "--check", "30%", "--model", "minilm", "--arm", "oelm-freeze"],
            "A saving of 30 % of the time is 1.43x",
        ),
        (["time", "--check", "1.3x", "--model", "minilm"], "--check needs --arm"),
        (["time", "--check", "0.8x", "--model", "minilm", "--arm", "fgm"], "which is no speed-up"),
        (["time", "--check", "2x", "--model", "minilm", "--arm", "oelm"], "--arm oelm: no method or named arm"),
        (["time", "x.yaml", "--check", "1.3x"], "leave the file out"),
        (["time", "x.yaml", "--model", "minilm"], "--model and --arm are for --check"),
        (["time", "x.yaml", "--minutes", "0"], "--minutes is 0"),
        (["time", "x.yaml", "--precision", "loose"], "--precision is loose; give a share such as 1%"),
        (["time", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_what_cannot_be_timed_is_refused_in_a_sentence(words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.output


def test_a_stated_speed_up_is_checked_from_operations_alone() -> None:
    """Freezing queries and keys saves 2 h^2 of 36 h^2 products of each layer, a little less with attention's own."""
    words = ["time", "--check", "1.3x", "--arm", "oelm-freeze", "--model", "google/bert_uncased_L-2_H-128_A-2"]
    found = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert not found["possible"]
    assert found["needed_share"] == pytest.approx(3 / 13)
    assert 0.03 < found["savable_share"] < 1 / 18
    text = CliRunner().invoke(app, words).stdout
    assert text.startswith("Not possible: 1.3x for oelm-freeze on google/bert_uncased_L-2_H-128_A-2 has to save 23.1 %")


def test_of_what_is_timed_only_its_own_gpu_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = use_fake(monkeypatch)
    monkeypatch.setattr(machine_watch, "EVERY_SECONDS", 0.01)
    monkeypatch.setattr(machine_watch, "LOOK_SECONDS", 0.01)
    nvml.cards[0].processes, nvml.cards[1].processes = {1: GB}, {os.getpid(): GB}
    with MachineWatch(os.getpid(), device_gpu("cuda:1")) as watch:
        until = time.monotonic() + 20
        while not any("gpus" in sample for sample in watch.samples):
            assert time.monotonic() < until
            time.sleep(0.01)
    seen = next(sample["gpus"] for sample in watch.samples if "gpus" in sample)
    assert [(gpu["index"], gpu["other_processes"]) for gpu in seen] == [(1, 0)]
