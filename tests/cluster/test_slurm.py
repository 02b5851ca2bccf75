"""Studies on a real Slurm, started on this machine: to the end, put back in the middle, lost, drained, left, cancelled, refused."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import FairtuneError, Stopped
from fairtune.execution.executors import remote, slurm, specs
from fairtune.execution.executors.performer import perform_job
from fairtune.execution.executors.remote import RemoteExecutor
from fairtune.execution.executors.slurm import SlurmJobs, make_slurm_executor, read_arrays, runs_in_queue
from fairtune.execution.executors.specs import Block
from fairtune.execution.study_run import run_plan
from fairtune.ledger.events import all_events
from fairtune.monitor.terminal import QuietMonitor
from fairtune.settings.execution import Execution
from fairtune.study.plan import Plan, make_plan
from fairtune.study.study_file import load_study
from fairtune.testing.runs import digests, perform_here, toy_source
from tests.cluster.slow_method import SECONDS, UNTIL, with_slow_steps
from tests.cluster.slurm_cluster import NODES, SlurmCluster, needs_slurm, processes_with, real_slurm

pytestmark = [needs_slurm, pytest.mark.timeout(500)]
SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with real_slurm() as found:
        yield found


@pytest.fixture(autouse=True)
def here(cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process uses the cluster, impatiently; jobs import fairtune from this tree."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, cluster.environment[name])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(remote, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(remote, "STATE_SECONDS", 0.5)
    monkeypatch.setattr(remote, "GONE_SECONDS", 5.0)
    monkeypatch.setattr(remote, "NOTE_SECONDS", 0.0)


class Acting(QuietMonitor):
    """Does something, aside, when something happens to a run for the first time; and notes what is said."""

    def __init__(self, acts: Mapping[tuple[str, str], Callable[[], None]] | None = None) -> None:
        self._acts, self.notes = dict(acts or {}), list[str]()
        self.threads: list[threading.Thread] = []

    def update(self, run: str, event: str, values: Mapping[str, Any]) -> None:
        if event == "note":
            self.notes.append(values["text"])
            event = values["text"]
        if event == "progress" and values.get("phase") != "train":
            return
        for key in [key for key in self._acts if key[0] == run and key[1] in event]:
            act = self._acts.pop(key)
            if act is interrupt:
                act()
            self.threads.append(threading.Thread(target=act))
            self.threads[-1].start()


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file: until it is there, a step on the cluster takes a while, so that no run ends before it is interfered with."""
    monkeypatch.setenv(SECONDS, "0.4")
    monkeypatch.setenv(UNTIL, str(tmp_path / "quick"))
    return tmp_path / "quick"


def study(folder: Path, model: Path, task: Any, seeds: int, arms: int, epochs: int, **slurm_settings: Any) -> Plan:
    source = toy_source(model, task)
    names = dict(list({"baseline": {}, "fast": {"lr": 2e-3}}.items())[:arms])
    execution = {"on": "slurm", "devices": "cpu", "checkpoint_every": 4, "slurm": {"time": 10, **slurm_settings}}
    train = {**source["train"], "epochs": epochs}
    source = {**source, "train": train, "arms": names, "seeds": seeds, "execution": execution}
    file = folder / "toy.json"  # which is YAML too
    file.write_text(json.dumps(with_slow_steps(source, folder)))
    return make_plan(load_study(file))


def start_now(cluster: SlurmCluster, job: str) -> None:
    """Have a job that was put back begin at once: Slurm lets it wait two minutes."""

    def is_put_back() -> bool:
        return cluster.ask("squeue", "-h", "-r", "-j", job, "-o", "%T %r").strip() == "PENDING BeginTime"

    cluster.until(is_put_back)
    cluster.ask("scontrol", "update", f"JobId={job}", "StartTime=now")


def check_bits(plan: Plan, runs: Path, alone: Path) -> None:
    for run in plan.runs:
        there, here = run.at(runs), run.at(alone)
        perform_here(here)
        assert digests(there.run.path) == digests(here.run.path), there.name
        assert not (there.run.path / ".lease").exists()


def test_an_array_is_put_back_in_the_middle_and_has_the_bits_of_a_local_study(
    cluster: SlurmCluster, tiny_model: Path, tiny_task: Any, tmp_path: Path, quick: Path
) -> None:
    plan, runs = study(tmp_path, tiny_model, tiny_task, 2, 2, 4, partition="main", max_parallel=2), tmp_path / "runs"
    first = {run.block: run for run in reversed(plan.runs)}
    both = threading.Barrier(2, quick.touch)

    def save_for_the_limit() -> None:
        (array,) = read_arrays(runs / "toy")
        cluster.ask("scancel", "--signal=USR1", "--batch", f"{array.job}_0")
        start_now(cluster, f"{array.job}_0")
        both.wait(240)

    def put_back() -> None:
        (array,) = read_arrays(runs / "toy")
        cluster.ask("scontrol", "requeue", f"{array.job}_1")
        start_now(cluster, f"{array.job}_1")
        both.wait(240)

    monitor = Acting(
        {
            (f"{first[0].arm}/seed-{first[0].seed}", "progress"): save_for_the_limit,
            (f"{first[1].arm}/seed-{first[1].seed}", "progress"): put_back,
        }
    )
    outcome = run_plan(plan, runs, monitor, make_slurm_executor(plan.study.execution, runs / "toy"))
    for thread in monitor.threads:
        thread.join()
    logs = [(runs / "toy" / "jobs" / "1" / f"{block}.log").read_text() for block in (0, 1)]
    assert sorted(outcome.finished) == sorted(f"{run.arm}/seed-{run.seed}" for run in plan.runs), (outcome.failed, logs)
    assert "back into the queue" in logs[0]
    assert all(log.count("runs to perform") >= 2 for log in logs), (logs, monitor.notes)
    for run in first.values():
        events = all_events(run.at(runs).run.events)
        resumed = [event["unit"] for event in events if event["event"] == "resumed"]
        assert len(resumed) >= 2
        assert resumed[1] > 0, "it went on from what it had saved"
    check_bits(plan, runs, tmp_path / "alone")


def test_drained_left_followed_lost_and_cancelled_a_run_has_the_same_bits(
    cluster: SlurmCluster,
    tiny_model: Path,
    tiny_task: Any,
    tmp_path: Path,
    quick: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan, runs = study(tmp_path, tiny_model, tiny_task, 1, 1, 4), tmp_path / "runs"
    home, name = runs / "toy", "baseline/seed-0"
    execution = plan.study.execution
    for node in NODES:
        cluster.ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=fan broken")

    # every node is drained: it is said why jobs wait; they are left in the queue
    monitor = Acting({(name, "waiting"): interrupt})
    executor = RemoteExecutor(SlurmJobs(execution, home), execution, home, lambda _: "leave")
    with pytest.raises(Stopped):
        run_plan(plan, runs, monitor, executor)
    assert "drained" in monitor.notes[-1].lower()
    (array,) = read_arrays(home)
    assert f"`scancel {array.job}` cancels them" in capsys.readouterr().err
    queued = runs_in_queue(home)[name]
    assert (queued.state, queued.job) == ("waiting", f"{array.job}_0")
    done = subprocess.run(
        [sys.executable, "-m", "fairtune", "status", "toy", "--runs", str(runs), "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (row,) = json.loads(done.stdout)["runs"]
    assert row["queue"]["job"] == f"{array.job}_0"

    # the same command follows it; its processes are killed, it is sent again; then it is cancelled, and saves
    for node in NODES:
        cluster.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def kill() -> None:
        for process in processes_with(f"SLURM_ARRAY_JOB_ID={array.job}", "SLURM_CONF="):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)

    class Then(Acting):
        def update(self, run: str, event: str, values: Mapping[str, Any]) -> None:
            lost = any("sent again" in note for note in self.notes)
            if lost and event == "progress" and values.get("phase") == "train":
                raise KeyboardInterrupt
            super().update(run, event, values)

    monitor = Then({(name, "progress"): kill})
    executor = RemoteExecutor(SlurmJobs(execution, home), execution, home, lambda _: "cancel")
    with pytest.raises(Stopped):
        run_plan(plan, runs, monitor, executor)
    assert monitor.notes[0].startswith("1 run is on Slurm already")
    assert any("sent again (1 of 3)" in note for note in monitor.notes)
    assert not cluster.ask("squeue", "-h").strip()
    events = all_events(plan.runs[0].at(runs).run.events)
    steps = [event["unit"] for event in events if event["event"] == "step"]

    # and goes on here
    quick.touch()
    job = plan.runs[0].at(runs)
    assert perform_job(job, "cpu", lambda: None, lambda _: None)["status"] == "finished"
    *_, resumed = [event["unit"] for event in all_events(job.run.events) if event["event"] == "resumed"]
    assert resumed > steps[-1] - 1, "the last step before it was cancelled was saved"
    check_bits(plan, runs, tmp_path / "alone")


@pytest.mark.parametrize(
    "settings",
    [
        {"partition": "mian"},
        {"gres": "gpu:1"},
        {"memory": "1T"},
        {"extra": ["--account=x", "--qos=y", "--begin=nonsense"]},
    ],
)
def test_what_slurm_cannot_give_is_refused_in_its_words(
    cluster: SlurmCluster, tmp_path: Path, settings: dict[str, Any]
) -> None:
    execution = Execution.model_validate({"on": "slurm", "slurm": settings})
    with pytest.raises(FairtuneError, match="Slurm refuses: ") as error:
        SlurmJobs(execution, tmp_path / "toy").queue([Block(tmp_path, 0, ())])
    assert "\n" not in str(error.value)
    assert not cluster.ask("squeue", "-h").strip()


def test_a_node_without_the_folder_or_with_another_version_is_reported_and_nothing_is_sent_again(
    cluster: SlurmCluster, tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = study(tmp_path, tiny_model, tiny_task, 1, 1, 1)

    def outcome_in(runs: str) -> str:
        monitor = Acting()
        executor = make_slurm_executor(plan.study.execution, tmp_path / runs / "toy")
        outcome = run_plan(plan, tmp_path / runs, monitor, executor)
        assert not any("sent again" in note for note in monitor.notes)
        return outcome.failed["baseline/seed-0"]

    monkeypatch.setattr(specs, "__version__", "9.9")
    assert "another version of fairtune" in outcome_in("one")
    monkeypatch.undo()
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, cluster.environment[name])
    script = slurm.make_script

    def elsewhere(home: Path, submission: Path, *rest: Any) -> str:
        return script(home, submission, *rest).replace(str(submission), str(tmp_path / "unshared"))

    monkeypatch.setattr(slurm, "make_script", elsewhere)
    assert "cannot see" in outcome_in("two")
