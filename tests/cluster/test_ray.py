"""A study on a real Ray cluster of two nodes: interrupted, then a node is killed in the middle; every run is performed once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import FairtuneError, Stopped
from fairtune.execution.executors import ray as connection
from fairtune.execution.executors import remote, specs
from fairtune.execution.executors.ray import RayCluster, make_ray_executor
from fairtune.execution.study_run import run_plan
from fairtune.ledger.environment import read_environment
from fairtune.ledger.events import all_events
from fairtune.monitor.terminal import QuietMonitor
from fairtune.settings.execution import Execution
from fairtune.study.plan import Plan, make_plan
from fairtune.study.study_file import load_study
from fairtune.testing.runs import digests, perform_here, toy_source
from tests.cluster.ray_nodes import RayNodes, ray_nodes
from tests.cluster.slow_method import SECONDS, UNTIL, with_slow_steps

if find_spec("ray") is None:
    pytest.skip("tests on a real Ray cluster: `make cluster-test` installs Ray", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with which steps on the cluster become quick."""
    return tmp_path_factory.mktemp("ray") / "quick"


@pytest.fixture(scope="module")
def nodes(quick: Path) -> Iterator[RayNodes]:
    with ray_nodes(**{SECONDS: "1", UNTIL: str(quick)}) as found:
        yield found


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (
        ("LOOK_SECONDS", 0.1),
        ("STATE_SECONDS", 0.5),
        ("GONE_SECONDS", 1.0),
        ("NOTE_SECONDS", 0.0),
    ):
        monkeypatch.setattr(remote, name, seconds)
    for name in (*connection.QUIET, *connection.PATIENCE, connection.LOOPBACK):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")


@pytest.fixture
def plan(nodes: RayNodes, tiny_model: Path, tiny_task: Any, tmp_path: Path) -> Plan:
    execution = {"on": "ray", "devices": "cpu", "checkpoint_every": 4, "ray": {"address": nodes.address}}
    source = {**toy_source(tiny_model, tiny_task), "execution": execution, "seeds": 2, "arms": {"baseline": {}}}
    file = tmp_path / "toy.json"  # which is YAML too
    file.write_text(json.dumps(with_slow_steps(source, tmp_path) | {"compare": {"to": "baseline"}}))
    return make_plan(load_study(file))


class Watching(QuietMonitor):
    """Notes what is said, and has something happen once, at a run's progress."""

    def __init__(self, act: Any) -> None:
        self.notes, self.events, self._act = list[str](), list[tuple[str, str]](), act

    def update(self, run: str, event: str, values: Mapping[str, Any]) -> None:
        self.events.append((run, event))
        if event == "note":
            self.notes.append(values["text"])
        elif event == "progress" and values.get("phase") == "train" and values["step"] > 5 and self._act is not None:
            act, self._act = self._act, None
            if not act(run):
                self._act = act  # not yet


def test_interrupted_and_with_a_node_lost_every_run_finishes_once_with_the_bits_of_a_local_one(
    nodes: RayNodes, quick: Path, plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, alone = tmp_path / "runs", tmp_path / "alone"
    jobs = {job.name: job for run in plan.runs if (job := run.at(runs))}

    def interrupt(_: str) -> bool:
        raise KeyboardInterrupt

    def kill(run: str) -> bool:
        found = read_environment(jobs[run].run) or {}
        if found.get("node") != nodes.second:
            return False
        lost.append(run)
        nodes.kill_second()
        quick.touch()
        return True

    lost: list[str] = []
    with pytest.raises(Stopped):
        run_plan(plan, runs, Watching(interrupt), make_ray_executor(plan.study.execution, runs / "toy"))
    begun = [job for job in jobs.values() if job.run.environment.exists()]
    assert begun
    assert not any(job.run.result.exists() for job in begun)
    assert any((job.run.path / "checkpoint").exists() for job in begun), "states were saved"

    monitor = Watching(kill)
    outcome = run_plan(plan, runs, monitor, make_ray_executor(plan.study.execution, runs / "toy"))
    assert sorted(outcome.finished) == sorted(jobs), (outcome.failed, monitor.notes)
    assert monitor.notes[0].startswith("2 runs handed to Ray")
    told = [note for note in monitor.notes if note.startswith("lost on Ray")]
    assert told[0].startswith(f"lost on Ray: {lost[0]}: its node"), told
    assert Counter(event for _, event in monitor.events)["ended"] == 2
    for run in plan.runs:
        job, here = run.at(runs), run.at(alone)
        events = all_events(job.run.events)
        assert [event["event"] for event in events].count("finished") == 1
        resumed = [event["unit"] for event in events if event["event"] == "resumed"]
        assert job.name != lost[0] or resumed[-1] > 0, "it went on from what was saved"
        perform_here(here)
        assert digests(job.run.path) == digests(here.run.path), job.name
        assert not (job.run.path / ".lease").exists()
    moved = read_environment(jobs[lost[0]].run) or {}
    assert moved["node"] != nodes.second
    assert nodes.second in [one["node"] for one in moved["earlier"]]
    assert capsys.readouterr().out == "", "where a command may print JSON, Ray prints nothing"


def refused(**execution: Any) -> str:
    with pytest.raises(FairtuneError) as error:
        RayCluster(Execution.model_validate({"on": "ray", **execution})).queue([])
    return str(error.value)


def test_what_cannot_be_is_said_before_anything_is_queued(nodes: RayNodes) -> None:
    assert "no Ray cluster can be used at '127.0.0.1:9': Connection refused" in refused(ray={"address": "127.0.0.1:9"})
    assert "the address of a Ray client; allowed: auto, or host:port" in refused(ray={"address": "ray://here:10001"})
    found = RayCluster(Execution.model_validate({"ray": {"address": nodes.address, "gpus": 2}}))
    with pytest.raises(FairtuneError, match="2 GPUs of one node"):
        found.queue([])
    found.close()


def test_a_node_with_another_version_is_reported_and_nothing_is_sent_again(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(specs, "__version__", "9.9")
    monitor = Watching(None)
    outcome = run_plan(
        plan, tmp_path / "runs", monitor, make_ray_executor(plan.study.execution, tmp_path / "runs" / "toy")
    )
    assert len(outcome.failed) == 2
    assert all("another version of fairtune" in reason for reason in outcome.failed.values())
    assert not any("sent again" in note for note in monitor.notes)
