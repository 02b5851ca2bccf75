"""Runs on other machines, on a cluster that only acts: runs as files, results through the ledger, losses sent again."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import DeviceError, LedgerError, Stopped
from fairtune.execution.executors import local, node, ray, remote, slurm, specs
from fairtune.execution.executors.base import ENDED, STARTED
from fairtune.execution.executors.remote import GONE, OVER, RUNNING, WAITING, BlockState, RemoteExecutor, exit_state
from fairtune.execution.executors.specs import Block, read_spec, write_blocks
from fairtune.execution.failures import record_failure
from fairtune.execution.study_run import run_plan
from fairtune.ledger.seals import FAILED, close_run, run_state
from fairtune.ledger.worker_signs import WorkerSign, write_sign
from fairtune.monitor.terminal import QuietMonitor
from fairtune.settings.execution import Execution
from fairtune.study.plan import Plan, make_plan
from fairtune.study.run_spec import RunSpec
from fairtune.study.study_file import load_study
from fairtune.testing.runs import digests
from tests import warm
from tests.execution.conftest import ToyStudy, perform_here


class ActingCluster:
    """Does to each block what a script says of each queueing, at once."""

    name = "the cluster"

    def __init__(self, acts: Mapping[int, Sequence[str]], left: Sequence[Block] = ()) -> None:
        self._acts, self._left = acts, list(left)
        self.queueings: list[list[int]] = []
        self.cancelled: list[int] = []
        self.known: dict[Block, BlockState] = {block: BlockState(RUNNING) for block in left}
        self.closed = False

    def group(self, jobs: Sequence[RunSpec]) -> list[list[RunSpec]]:
        return slurm.group_by_seed(jobs)

    def queue(self, blocks: Sequence[Block]) -> str:
        self.queueings.append([block.number for block in blocks])
        for block in blocks:
            before = sum(block.number in queued for queued in self.queueings) - 1
            acts = self._acts.get(block.number, ["finish"])
            self._act(block, acts[min(before, len(acts) - 1)])
        return "queued"

    def _act(self, block: Block, act: str) -> None:
        state = {"vanish": GONE, "cancel": OVER, "wait": WAITING, "finish and vanish": GONE}.get(act, RUNNING)
        self.known[block] = BlockState(state, "why" if state in (GONE, OVER) else "")
        for job in block.jobs:
            if act.startswith("finish"):
                finish(job)
            elif act == "fail":
                record_failure(job, "no", "run")

    def left(self) -> list[Block]:
        return self._left

    def states(self, blocks: Collection[Block]) -> Mapping[Block, BlockState]:
        return {block: self.known[block] for block in blocks}

    def cancel(self, blocks: Collection[Block]) -> None:
        self.cancelled += sorted(block.number for block in blocks)

    def ways(self) -> str:
        return "Come back."

    def close(self) -> None:
        self.closed = True


def finish(job: RunSpec) -> None:
    job.run.write_plan(job.as_json())
    close_run(job.run, job.key, {"status": "finished", "signature": job.signature})


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOK_SECONDS", "STATE_SECONDS", "GONE_SECONDS", "NOTE_SECONDS"):
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


def test_runs_go_out_in_blocks_and_their_results_are_read_from_the_ledger(plan: Plan, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    cluster = ActingCluster({1: ["fail"]})
    outcome, monitor = run_on(cluster, plan, runs)
    assert cluster.queueings == [[0, 1]]
    assert outcome.finished == ["baseline/seed-0", "fast/seed-0"]
    assert outcome.failed == {"fast/seed-1": "no", "baseline/seed-1": "no"}
    assert [event for run, event, _ in monitor.seen if run == "fast/seed-0"] == [STARTED, ENDED]
    assert cluster.closed
    names = {file.name: read_spec(file)[0].name for file in (runs / "toy" / "jobs" / "1").glob("*.json")}
    assert names == {
        "0-0000.json": "baseline/seed-0", "0-0001.json": "fast/seed-0",
        "1-0000.json": "fast/seed-1", "1-0001.json": "baseline/seed-1",
    }  # fmt: skip
    outcome, _ = run_on(ActingCluster({}), plan, runs)
    assert sorted(outcome.finished) == ["baseline/seed-1", "fast/seed-1"], (
        "an earlier failure is not taken for the new result"
    )


def test_a_block_that_is_lost_is_noted_and_sent_again(plan: Plan, tmp_path: Path) -> None:
    cluster = ActingCluster({0: ["vanish", "vanish", "finish"], 1: ["finish and vanish"]})
    outcome, monitor = run_on(cluster, plan, tmp_path / "runs")
    assert cluster.queueings == [[0, 1], [0], [0]]
    assert len(outcome.finished) == 4
    lost = [note for note in monitor.notes if "lost" in note]
    assert lost[0] == "lost on the cluster: baseline/seed-0, fast/seed-0: why; sent again (1 of 3)."
    assert len(lost) == 2


def test_a_block_that_is_lost_again_and_again_has_failed(plan: Plan, tmp_path: Path) -> None:
    cluster = ActingCluster({0: ["vanish"]})
    outcome, _ = run_on(cluster, plan, tmp_path / "runs")
    assert len(cluster.queueings) == 4
    assert sorted(outcome.failed) == ["baseline/seed-0", "fast/seed-0"]
    job = plan.runs[0].at(tmp_path / "runs")
    assert run_state(job.run, job.key).status == FAILED


def test_what_a_person_cancelled_is_not_sent_again(plan: Plan, tmp_path: Path) -> None:
    cluster = ActingCluster({1: ["cancel"]})
    outcome, _ = run_on(cluster, plan, tmp_path / "runs")
    assert outcome.failed["fast/seed-1"] == "why"
    assert len(outcome.finished) == 2
    assert len(cluster.queueings) == 1


def test_a_run_that_another_machine_still_performs_is_not_taken_for_lost(plan: Plan, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    job = plan.runs[0].at(runs)
    (job.run.path / ".lease").mkdir(parents=True)
    (job.run.path / ".lease" / "1").write_text('{"machine": "another"}')
    timer = threading.Timer(0.5, finish, (job,))
    timer.start()
    cluster = ActingCluster({0: ["vanish", "finish"]})
    outcome, _ = run_on(cluster, plan, runs)
    timer.join()
    assert job.name in outcome.finished


def test_runs_that_are_there_already_are_followed_by_their_signs(plan: Plan, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    jobs = [run.at(runs) for run in plan.runs]
    (earlier,) = write_blocks(runs / "toy", [jobs[:2]], plan.study.execution)
    finish(jobs[0])
    (runs / "toy" / "logs").mkdir()
    write_sign(runs / "toy" / "logs", WorkerSign("n1-cpu", "cpu", run=jobs[1].name, phase="train", done=1, of=2))
    cluster = ActingCluster({}, [earlier])
    timer = threading.Timer(0.3, finish, (jobs[1],))
    timer.start()
    outcome, monitor = run_on(cluster, plan, runs)
    timer.join()
    assert cluster.queueings == [[0]], "only the second seed is new"
    assert outcome.kept == ["baseline/seed-0"]
    assert len(outcome.finished) == 3
    assert monitor.notes[0].startswith("1 run is on the cluster already")
    assert (jobs[1].name, "progress", {"phase": "train", "step": 1, "steps": 2}) in monitor.seen


@pytest.mark.parametrize(("wish", "cancelled"), [("leave", 0), ("cancel", 2)])
def test_ctrl_c_leaves_or_cancels(
    plan: Plan, tmp_path: Path, wish: str, cancelled: int, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert ("Come back." in capsys.readouterr().err) == (wish == "leave")


def test_a_spec_that_is_changed_missing_or_of_another_version_is_refused_on_the_node(
    toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = write_blocks(tmp_path / "toy", [[toy.job("runs")]], Execution())
    (file,) = block.specs
    assert node.perform_specs([str(tmp_path / "elsewhere.json")]) == node.UNSEEN
    monkeypatch.setattr(specs, "__version__", "9.9")
    assert node.perform_specs([str(file)]) == node.OTHER_VERSION
    assert "but this is fairtune 9.9" in capsys.readouterr().err
    file.write_text(file.read_text().replace('"arm"', '"arms"'))
    with pytest.raises(LedgerError):
        read_spec(file)


@pytest.mark.parametrize(
    ("code", "state"),
    [(node.DONE, GONE), (node.LEFT, GONE), (1, GONE), (node.UNSEEN, OVER), (node.OTHER_VERSION, OVER)],
)
def test_an_exit_code_says_whether_to_send_a_block_again(code: int, state: str, tmp_path: Path) -> None:
    assert exit_state(code, Block(tmp_path / "runs" / "toy" / "jobs" / "1", 0, ())).state == state


def test_a_run_performed_from_a_file_has_the_bits_of_a_local_run(
    toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", warm._dispatch)
    whole, away = toy.job("whole"), toy.job("runs")
    perform_here(whole)
    (block,) = write_blocks(tmp_path / "runs" / "toy", [[away]], Execution(devices=("cpu",)))
    assert node.perform_specs([str(block.specs[0])]) == node.DONE
    assert digests(away.run.path) == digests(whole.run.path)
    assert not (away.run.path / ".lease").exists()
    assert node.perform_specs([str(block.specs[0])]) == node.DONE, "what is done is not done again"


def test_a_worker_ends_with_the_process_that_holds_its_input_and_saves(toy: ToyStudy, tmp_path: Path) -> None:
    job = toy.job("runs", epochs=2000)
    (block,) = write_blocks(tmp_path / "runs" / "toy", [[job]], Execution(devices=("cpu",)))
    order = [sys.executable, "-m", "fairtune", "worker", node.ATTACHED, str(block.specs[0])]
    process = warm.WarmPopen(order, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=dict(os.environ))
    assert process.stdin is not None
    while not (job.run.events.exists() and b'"step"' in job.run.events.read_bytes()):
        assert process.poll() is None
    process.stdin.close()
    assert process.wait(60) == node.LEFT
    assert list(job.run.checkpoint.iterdir())
    assert not job.run.result.exists()


def test_what_a_node_lacks_is_recorded_as_the_runs_failure(
    toy: ToyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_slots(*_: object) -> None:
        raise DeviceError("this machine has no visible GPU.")

    monkeypatch.setattr(local, "find_slots", find_slots)
    job = toy.job("runs")
    (block,) = write_blocks(tmp_path / "runs" / "toy", [[job]], Execution())
    assert node.perform_specs([str(block.specs[0])]) == node.DONE
    state = run_state(job.run, job.key)
    assert (state.status, state.result["reason"]) == (FAILED, "this machine has no visible GPU.")


def test_a_script_asks_slurm_for_what_the_study_says(tmp_path: Path) -> None:
    wanted = {"partition": "gpu", "time": "4:00:00", "gres": "gpu:1", "memory": "16G", "max_parallel": 4}
    execution = Execution.model_validate({"threads": 2, "slurm": {**wanted, "extra": ["--account=lab"]}})
    script = slurm.make_script(tmp_path / "a study", Path("/runs/a study/jobs/1"), "0-3", execution, "/env/bin/python")
    for line in (
        "#SBATCH --job-name=fairtune-a-study", "#SBATCH --array=0-3%4", "#SBATCH --signal=B:USR1@120", "#SBATCH --requeue",
        '#SBATCH --output="/runs/a study/jobs/1/%a.log"', "#SBATCH --partition=gpu", "#SBATCH --time=4:00:00",
        "#SBATCH --gres=gpu:1", "#SBATCH --cpus-per-task=2", "#SBATCH --mem=16G", "#SBATCH --account=lab",
        """exec /env/bin/python -m fairtune worker '/runs/a study/jobs/1'/"$SLURM_ARRAY_TASK_ID"-*.json""",
    ):  # fmt: skip
        assert line in script.splitlines()
    assert "USR1@15" in slurm.make_script(tmp_path, tmp_path, "0", Execution.model_validate({"slurm": {"time": 1}}))


def test_without_slurm_or_ray_the_study_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(slurm.SlurmError, match="no Slurm here"):
        slurm.make_slurm_executor(Execution(), tmp_path)
    monkeypatch.setattr(ray, "find_spec", lambda _: None)
    with pytest.raises(Exception, match="package `ray`"):
        ray.connect(None)


def test_runs_are_found_in_slurms_queue_and_a_silent_slurm_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "toy"
    (home / "jobs").mkdir(parents=True)
    slurm.write_arrays(home, [slurm.QueuedArray("7", "1", {"0": ["a/seed-0", "b/seed-0"], "1": ["a/seed-1"]})])
    monkeypatch.setattr(slurm, "_ask", lambda *_: "7|0|RUNNING|n1|n1\n7|1|PENDING||(JobArrayTaskLimit)\n")
    found = slurm.runs_in_queue(home)
    assert {name: one.words for name, one in found.items()} == {
        "a/seed-0": "job 7_0 on n1", "b/seed-0": "job 7_0 on n1",
        "a/seed-1": "job 7_1 waits for others of the study, as max_parallel says",
    }  # fmt: skip

    def silent(*_: str) -> str:
        raise slurm.SlurmError("no answer")

    monkeypatch.setattr(slurm, "_ask", silent)
    assert slurm.runs_in_queue(home) == {}
    (home / "jobs" / slurm.RECORD).write_bytes(b"\xff")
    assert slurm.read_arrays(home) == []
