"""What live views show of a study: states, counts, figures, times and devices, from a ledger that moves."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tests.report.made_ledger import STUDY, ArmSpec, MadeLedger, make_study, usual_ledger

from fairtune.core.errors import LedgerError
from fairtune.core.files import finite, write_sealed
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import lock
from fairtune.ledger.worker_signs import WorkerSign, write_sign
from fairtune.monitor.judgement import Judge
from fairtune.monitor.remaining_time import with_left
from fairtune.monitor.study_builder import StudyBuilder
from fairtune.monitor.study_view import RunView, StudyView


def view(runs: Path, judged: str = "never") -> StudyView:
    builder = StudyBuilder(runs, judged=judged)
    builder.tick()
    return builder.view(STUDY)


@pytest.fixture
def begun(tmp_path: Path) -> MadeLedger:
    """Two arms: one run of each has finished, and one is under way, at step 10 of 20."""
    made = make_study(tmp_path / "runs", {"baseline": ArmSpec([336, None]), "other": ArmSpec([320, None])})
    made.results()
    folder = made.folder("baseline", 1)
    plan = next(run for run in read(made)["runs"] if (run["arm"], run["seed"]) == ("baseline", 1))
    folder.begin({"key": plan["key"], "steps": 20})
    log = EventLog(folder.events)
    log.write("resumed", 0, step=0)
    for step in range(1, 11):
        log.write("step", step - 1, step=step, epoch=0, loss=1.0 / step, seconds=0.5, data_seconds=0.0)
    log.write("evaluation", 10, split="validation", step=10, epoch=1, accuracy=0.8, loss=0.4)
    log.write("warning", 10, text="a strange\x1b[31m thing")
    log.close()
    return made


def read(made: MadeLedger) -> dict[str, object] | dict[str, list[dict[str, object]]]:
    return json.loads((made.runs / STUDY / "study.json").read_text())  # type: ignore[no-any-return]


def test_a_run_under_way_shows_how_far_it_is(begun: MadeLedger) -> None:
    folder = begun.folder("baseline", 1)
    logs = begun.runs / STUDY / "logs"
    logs.mkdir()
    write_sign(logs, WorkerSign("cpu", "cpu", "a processor", "baseline/seed-1", "evaluate", 5, 9, load=0.5))
    with lock(folder.lock, "taken"):
        found = view(begun.runs)
    assert found.state == "running"
    assert found.counts == {"finished": 2, "running": 1, "waiting": 1}
    run = found.runs[0]
    assert (run.arm, run.seed, run.state, run.step, run.steps) == ("baseline", 1, "running", 10, 20)
    assert (run.score, run.split, run.phase, run.worker) == (0.8, "validation", "validating, 5 of 9", "cpu")
    assert run.loss == pytest.approx(sum(1 / step for step in range(1, 11)) / 10)
    assert run.left is not None
    assert found.left is not None
    assert found.left >= run.left
    assert [device.run for device in found.devices] == ["baseline/seed-1"]
    assert found.verdict.peeking == "peeking: 1 of 2 seeds"
    assert ("baseline/seed-1", "a strange\\x1b[31m thing") in found.log


def test_a_run_that_was_killed_is_interrupted_and_the_study_stopped(begun: MadeLedger) -> None:
    found = view(begun.runs)
    assert (found.state, found.left) == ("stopped", None)
    assert found.counts == {"finished": 2, "interrupted": 1, "waiting": 1}


def test_a_study_in_every_state(tmp_path: Path) -> None:
    planned = make_study(tmp_path / "a", {"baseline": ArmSpec([None]), "other": ArmSpec([None])})
    assert view(planned.runs).state == "planned"
    ended = make_study(tmp_path / "b", {"baseline": ArmSpec([336, 338]), "other": ArmSpec([320, "no memory"])})
    ended.results()
    found = view(ended.runs, "now")
    assert (found.state, found.verdict.peeking, found.verdict.note) == ("finished", "", "")
    assert found.verdict.opening
    failed = next(run for run in found.runs if run.state == "failed")
    assert failed.reason == "no memory"
    assert [(arm.arm, arm.n, arm.planned, arm.counted) for arm in found.arms] == [
        ("baseline", 2, 2, 2),
        ("other", 1, 2, 1),
    ]


def test_before_the_first_verdict_there_is_none_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = usual_ledger(tmp_path / "runs")
    made.results()
    monkeypatch.setattr(Judge, "latest", lambda *_: None)
    found = view(made.runs, "beside")
    assert (found.verdict.opening, found.verdict.note) == ("", "The first verdict is being worked out.")
    assert [arm.mean for arm in found.arms] == [None] * 5
    assert [arm.against for arm in found.arms][:3] == [None, "baseline", "baseline-fast"]


def test_a_study_that_cannot_be_shown_is_told_in_a_sentence(tmp_path: Path) -> None:
    made = usual_ledger(tmp_path / "runs")
    builder = StudyBuilder(made.runs, judged="never")
    builder.tick()
    content = json.loads((made.runs / STUDY / "study.json").read_text())
    (made.runs / STUDY / "study.json").write_text('{"half')
    builder.tick()
    assert builder.view(STUDY).state == "unreadable"
    assert "study.json" in builder.view(STUDY).problem
    content.pop("seal", None)
    write_sealed(made.runs / STUDY / "study.json", {**content, "runs": 5})
    builder.tick()
    assert "runs: " in builder.view(STUDY).problem
    shutil.rmtree(made.runs / STUDY)
    builder.tick()
    assert "is gone" in builder.view(STUDY).problem
    assert builder.metric(STUDY) is None
    shutil.rmtree(made.runs)
    with pytest.raises(LedgerError, match="cannot be read"):
        builder.tick()


def test_curves_are_means_of_what_has_finished(begun: MadeLedger) -> None:
    builder = StudyBuilder(begun.runs, judged="never")
    builder.tick()
    builder.curves(STUDY)  # from then on curves of ended runs are read
    builder.tick()
    found = builder.curves(STUDY)
    baseline = found.losses[0][1][0]
    assert (baseline.arm, baseline.n) == ("baseline", 1)
    assert [seed for seed, _ in baseline.single] == [1]
    assert baseline.single[0][1][-1][0] == 10
    assert json.loads(json.dumps(finite(asdict(found))))["losses"][0][0] == ""


def test_pages_of_runs(tmp_path: Path) -> None:
    made = usual_ledger(tmp_path / "runs")
    made.results()
    builder = StudyBuilder(made.runs, judged="never")
    builder.tick()
    total, found = builder.run_views(STUDY, state="finished", start=5, most=3)
    assert (total, [run.state for run in found]) == (11, ["finished"] * 3)
    assert builder.run_views(STUDY, arm="nobody") == (0, [])
    assert builder.run_view(STUDY, "nobody", 0) is None


def test_what_is_left_goes_by_others_of_the_arm_or_by_its_own_speed() -> None:
    run = RunView("a", 1, 0, "running", step=25, steps=100, speed=5.0)
    assert with_left(run, {"a": 40.0}).left == 30.0
    assert with_left(run, {}).left == 15.0
    assert with_left(replace(run, speed=None), {}).left is None
    assert with_left(replace(run, state="finished"), {"a": 40.0}).left is None


def test_scores_of_trials_are_said_to_be_of_validation(begun: MadeLedger) -> None:
    plan = read(begun)
    plan["arms"]["other"]["trial"] = {"of": "baseline"}  # type: ignore[index,call-overload]
    write_sealed(begun.runs / STUDY / "study.json", plan)
    found = {(run.arm, run.seed): run.split for run in view(begun.runs).runs}
    assert (found["baseline", 0], found["other", 0]) == ("test", "validation")
