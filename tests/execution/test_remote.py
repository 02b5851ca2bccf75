"""Runs on other machines, on a cluster that only acts: jobs as files, blocks performed from them, losses sent again."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import DeviceError, LedgerError
from fairtune.execution.executors import local
from fairtune.execution.executors.base import ENDED, PROGRESS, REFUSED, STARTED
from fairtune.execution.executors.remote import executor as remote
from fairtune.execution.executors.remote import job_files, node
from fairtune.execution.executors.remote.cluster import (
    CANCELLED,
    GONE,
    RUNNING,
    WAITING,
    BlockKey,
    BlockState,
    node_command,
)
from fairtune.execution.executors.remote.executor import RemoteExecutor
from fairtune.execution.executors.remote.job_files import (
    STOPPED,
    JobAnswer,
    Submission,
    read_answer,
    read_submission,
    write_answer,
    write_submission,
)
from fairtune.execution.job import Job
from fairtune.execution.study_run import run_plan
from fairtune.ledger.seals import close_run
from fairtune.monitor.terminal import QuietMonitor
from fairtune.settings.execution import Execution
from fairtune.study.plan import Plan, make_plan
from fairtune.study.study_file import load_study
from fairtune.testing.runs import digests
from tests import warm
from tests.execution.conftest import ToyStudy, perform_here


class ActingCluster:
    """Answers each block from a script of what happens at each queueing, at once."""

    name = "the cluster"

    def __init__(self, acts: Mapping[int, Sequence[str]], left: Sequence[Path] = ()) -> None:
        self._acts, self._left = acts, list(left)
        self.queueings: list[tuple[str, list[int]]] = []
        self.cancelled: list[BlockKey] = []
        self.known: dict[BlockKey, BlockState] = {}
        self.closed = False

    def check(self, jobs: Sequence[Job]) -> None:
        assert jobs

    def group(self, jobs: Sequence[Job]) -> list[list[Job]]:
        seeds = dict.fromkeys(job.plan["seed"] for job in jobs)
        return [[job for job in jobs if job.plan["seed"] == seed] for seed in seeds]

    def queue(self, submission: Submission, blocks: Sequence[int]) -> str:
        self.queueings.append((submission.folder.name, list(blocks)))
        for block in blocks:
            before = sum(block in queued for _, queued in self.queueings) - 1
            acts = self._acts.get(block, ["finish"])
            self._act(submission, block, acts[min(before, len(acts) - 1)])
        return "queued"

    def _act(self, submission: Submission, block: int, act: str) -> None:
        state = {"vanish": GONE, "stop": GONE, "cancel": CANCELLED, "wait": WAITING}.get(act, RUNNING)
        self.known[submission.folder.name, block] = BlockState(state, "the node died" if state == GONE else "")
        for number in submission.blocks[block]:
            job = submission.jobs[number]
            if act == "finish":
                result = finish(job)
                write_answer(submission.folder, number, JobAnswer(ENDED, {"result": result}))
            elif act == "silent":
                finish(job)
                self.known[submission.folder.name, block] = BlockState(GONE)
            elif act == "refuse":
                write_answer(submission.folder, number, JobAnswer(REFUSED, {"reason": "no"}))
            elif act == "stop":
                write_answer(submission.folder, number, JobAnswer(STOPPED))

    def queued(self) -> list[Path]:
        return self._left

    def states(self, blocks: Collection[BlockKey]) -> Mapping[BlockKey, BlockState]:
        return {key: self.known[key] for key in blocks if key in self.known}

    def cancel(self, blocks: Collection[BlockKey]) -> None:
        self.cancelled += sorted(blocks)

    def ways(self) -> str:
        return "Come back."

    def close(self) -> None:
        self.closed = True


def finish(job: Job) -> dict[str, Any]:
    job.run.write_plan(job.plan)
    result = {"status": "finished", "signature": job.plan["signature"]}
    close_run(job.run, job.plan["key"], result)
    return result


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANSWER_SECONDS", "STATE_SECONDS", "GONE_SECONDS", "NOTE_SECONDS"):
        monkeypatch.setattr(remote, name, 0.0)


@pytest.fixture
def plan(toy: ToyStudy) -> Plan:
    return make_plan(load_study({**toy.source, "arms": {"baseline": {}, "fast": {"lr": 2e-3}}, "seeds": 2}))


class Noting(QuietMonitor):
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, Mapping[str, Any]]] = []

    def update(self, run: str, event: str, values: Mapping[str, Any]) -> None:
        self.seen.append((run, event, values))

    @property
    def notes(self) -> list[str]:
        return [values["text"] for _, event, values in self.seen if event == "note"]


def run_on(cluster: ActingCluster, plan: Plan, runs: Path) -> tuple[Any, Noting]:
    monitor = Noting()
    executor = RemoteExecutor(cluster, plan.study.execution, runs / "toy")
    return run_plan(plan, runs, monitor, executor), monitor


def test_jobs_go_out_in_blocks_and_answers_come_back(plan: Plan, tmp_path: Path) -> None:
    cluster = ActingCluster({1: ["refuse"]})
    outcome, monitor = run_on(cluster, plan, tmp_path / "runs")
    assert cluster.queueings == [("1", [0, 1])]
    assert outcome.finished == ["baseline/seed-0", "fast/seed-0"]
    assert outcome.failed == {"fast/seed-1": "no", "baseline/seed-1": "no"}
    assert [event for run, event, _ in monitor.seen if run == "fast/seed-0"] == [STARTED, ENDED]
    assert monitor.notes[0] == "queued"
    assert cluster.closed
    written = read_submission(tmp_path / "runs" / "toy" / "jobs" / "1")
    assert [[written.jobs[n].name for n in block] for block in written.blocks] == [
        ["baseline/seed-0", "fast/seed-0"],
        ["fast/seed-1", "baseline/seed-1"],
    ]
    assert written.execution == plan.study.execution


def test_a_block_that_is_lost_is_told_and_sent_again(plan: Plan, tmp_path: Path) -> None:
    cluster = ActingCluster({0: ["vanish", "stop", "finish"], 1: ["silent"]})
    outcome, monitor = run_on(cluster, plan, tmp_path / "runs")
    assert cluster.queueings == [("1", [0, 1]), ("1", [0]), ("1", [0])]
    assert len(outcome.finished) == 4, "what finished without an answer is in the ledger"
    lost = [note for note in monitor.notes if "lost" in note]
    assert lost[0] == ("lost on the cluster: baseline/seed-0, fast/seed-0: the node died; sent again (1 of 3).")
    assert len(lost) == 2


def test_a_block_that_is_lost_again_and_again_has_failed(plan: Plan, tmp_path: Path) -> None:
    cluster = ActingCluster({0: ["vanish"]})
    outcome, _ = run_on(cluster, plan, tmp_path / "runs")
    assert len(cluster.queueings) == 4
    assert outcome.failed == dict.fromkeys(
        ["baseline/seed-0", "fast/seed-0"], "its job on the cluster was lost 4 times (the node died)"
    )
    result = json.loads((tmp_path / "runs" / "toy" / "fast" / "seed-0" / "result.json").read_text())
    assert result["status"] == "failed"


def test_what_a_person_cancelled_is_not_sent_again(plan: Plan, tmp_path: Path) -> None:
    outcome, _ = run_on(ActingCluster({1: ["cancel"]}), plan, tmp_path / "runs")
    assert outcome.failed["fast/seed-1"] == "its job was cancelled; run the same command again to go on with it"
    assert len(outcome.finished) == 2


def test_jobs_that_are_there_already_are_followed(plan: Plan, tmp_path: Path) -> None:
    from fairtune.execution.job import make_job

    runs = tmp_path / "runs"
    jobs = [make_job(plan, run, runs) for run in plan.runs]
    earlier = write_submission(runs / "toy", [jobs[:2]], plan.study.execution)
    write_answer(earlier.folder, 0, JobAnswer(ENDED, {"result": finish(jobs[0])}))
    write_answer(earlier.folder, 1, JobAnswer(PROGRESS, {"phase": "train", "step": 1, "steps": 2}))
    cluster = ActingCluster({}, [earlier.folder])
    cluster.known["1", 0] = BlockState(RUNNING)

    def end() -> None:
        write_answer(earlier.folder, 1, JobAnswer(ENDED, {"result": finish(jobs[1])}))

    timer = threading.Timer(0.2, end)
    timer.start()
    outcome, monitor = run_on(cluster, plan, runs)
    timer.join()
    assert cluster.queueings == [("2", [0])], "only the second seed is new"
    assert outcome.kept == ["baseline/seed-0"]
    assert len(outcome.finished) == 3
    assert monitor.notes[0].startswith("1 run is on the cluster already")


@pytest.mark.parametrize(("wish", "cancelled"), [("leave", 0), ("cancel", 2)])
def test_ctrl_c_leaves_or_cancels(
    plan: Plan, tmp_path: Path, wish: str, cancelled: int, capsys: pytest.CaptureFixture[str]
) -> None:
    from fairtune.core.errors import Stopped

    class Impatient(Noting):
        def update(self, run: str, event: str, values: Mapping[str, Any]) -> None:  # noqa: ARG002
            if event == "note" and "waiting" in values["text"]:
                raise KeyboardInterrupt

    cluster = ActingCluster({0: ["wait"], 1: ["wait"]})
    executor = RemoteExecutor(cluster, plan.study.execution, tmp_path / "runs" / "toy", lambda *_: wish)
    with pytest.raises(Stopped):
        run_plan(plan, tmp_path / "runs", Impatient(), executor)
    assert len(cluster.cancelled) == cancelled
    assert cluster.closed
    assert ("the jobs stay on the cluster. Come back." in capsys.readouterr().err) == (wish == "leave")


def test_jobs_of_another_version_are_refused_on_the_node(
    toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    submission = write_submission(tmp_path / "toy", [[toy.job("runs")], [toy.job("others")]], Execution())
    write_answer(submission.folder, 1, JobAnswer(ENDED, {"result": {}}))
    monkeypatch.setattr(job_files, "__version__", "9.9")
    monkeypatch.setattr("sys.argv", node_command(submission.folder, 0)[2:])
    assert node.main() == node.UNUSABLE
    answer = read_answer(submission.folder, 0)
    assert answer is not None
    assert answer.type == REFUSED
    assert "but this node has fairtune 9.9" in answer.values["reason"]
    assert answer.values["reason"] in capsys.readouterr().err
    assert read_answer(submission.folder, 1) == JobAnswer(ENDED, {"result": {}}), (
        "another block is none of its business"
    )


def test_a_changed_or_missing_job_is_told(toy: ToyStudy, tmp_path: Path) -> None:
    submission = write_submission(tmp_path / "toy", [[toy.job("runs")]], Execution())
    file = submission.folder / "0.json"
    file.write_text(file.read_text().replace('"arm"', '"arms"'))
    with pytest.raises(LedgerError, match="not what was written"):
        read_submission(submission.folder)
    with pytest.raises(LedgerError, match="on a disk that all nodes share"):
        read_submission(tmp_path / "elsewhere")


def test_a_block_performed_from_files_has_the_bits_of_a_local_run(
    toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", warm._dispatch)
    whole, away = toy.job("whole"), toy.job("runs")
    perform_here(whole)
    submission = write_submission(tmp_path / "runs" / "toy", [[away]], Execution(devices=("cpu",)))
    assert node.perform_block(submission, 0, "node 1")
    answer = read_answer(submission.folder, 0)
    assert answer is not None
    assert answer.values["result"]["status"] == "finished"
    assert digests(away.run.path) == digests(whole.run.path)
    assert (tmp_path / "runs" / "toy" / "logs" / "worker-node-1-cpu.log").exists()
    assert not (away.run.path / ".lease").exists()
    assert node.perform_block(submission, 0), "what is done is not done again"


def test_what_a_node_lacks_is_the_jobs_answer_and_no_crash(
    toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_slots(*_: object) -> None:
        raise DeviceError("execution.devices_per_run is 4, but this machine has 1 GPU.")

    monkeypatch.setattr(local, "find_slots", find_slots)
    submission = write_submission(tmp_path / "runs" / "toy", [[toy.job("runs")]], Execution())
    assert node.perform_block(submission, 0)
    answer = read_answer(submission.folder, 0)
    assert answer == JobAnswer(REFUSED, {"reason": "execution.devices_per_run is 4, but this machine has 1 GPU."})
    assert answer.values["reason"] in capsys.readouterr().err
