"""What fairtune tells Slurm and what it makes of its answers, without a Slurm: scripts, refusals, states in words."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from fairtune.execution.executors.slurm import commands, queue_states
from fairtune.execution.executors.slurm.commands import NodeFacts, QueuedTask, SlurmError, require_slurm
from fairtune.execution.executors.slurm.executor import group_by_seed, make_slurm_executor
from fairtune.execution.executors.slurm.partitions import require_resources
from fairtune.execution.executors.slurm.queue_states import (
    QueuedArray,
    read_arrays,
    reason_of,
    runs_in_queue,
    state_of,
    write_arrays,
)
from fairtune.execution.executors.slurm.script import array_option, job_name, make_probe, make_script
from fairtune.execution.job import Job
from fairtune.settings.execution import Execution


def settings(execution: dict[str, Any] | None = None, **slurm: Any) -> Execution:
    return Execution.model_validate({"on": "slurm", **(execution or {}), "slurm": slurm})


def options_of(script: str) -> dict[str, str]:
    lines = [line.removeprefix("#SBATCH --") for line in script.splitlines() if line.startswith("#SBATCH")]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def test_the_script_asks_for_what_the_study_says() -> None:
    wanted = settings(partition="gpu", time="4:00:00", gres="gpu:a100:2", cpus=8, memory="32G", max_parallel=3)
    script = make_script("my study", Path("/shared/runs/my study/jobs/1"), 5, wanted, "/shared/env/bin/python")
    found = options_of(script)
    assert found == {
        "job-name": "fairtune-my-study", "array": "0-4%3", "output": '"/shared/runs/my study/jobs/1/block-%a.log"',
        "open-mode": "append", "requeue": "", "signal": "B:USR1@120", "nodes": "1", "ntasks": "1", "partition": "gpu",
        "time": "4:00:00", "gres": "gpu:a100:2", "cpus-per-task": "8", "mem": "32G",
    }  # fmt: skip
    order = shlex.split(script.splitlines()[-1])
    assert order[:2] == ["exec", "/shared/env/bin/python"], "signals reach the process itself"
    assert order[-1] == "/shared/runs/my study/jobs/1"


def test_what_is_not_said_is_left_to_the_cluster_and_extra_options_follow() -> None:
    script = make_script("s", Path("/r/50%/jobs/1"), 1, settings(extra=["--account=lab", "--nice=10"]))
    found = options_of(script)
    assert not {"partition", "time", "gres", "cpus-per-task", "mem"} & found.keys()
    assert found["output"] == "/r/50%%/jobs/1/block-%a.log"
    assert "#SBATCH --account=lab\n#SBATCH --nice=10\n" in script


def test_a_short_limit_leaves_time_to_work_and_threads_and_processes_get_cores() -> None:
    assert options_of(make_script("s", Path("/r"), 1, settings(time=2)))["signal"] == "B:USR1@30"
    several = settings({"threads": 2, "devices_per_run": 4})
    assert options_of(make_script("s", Path("/r"), 1, several))["cpus-per-task"] == "8"
    assert options_of(make_probe("s", Path("/r"), several))["time"] == "1"
    assert array_option([1, 4], settings(max_parallel=2)) == "--array=1,4%2"
    assert len(job_name("x" * 500)) == 100


def job(arm: str, seed: int, trial: bool = False) -> Job:
    plan = {"arm": arm, "seed": seed, "settings": {"trial": True} if trial else {}}
    return Job("", plan, {}, {}, 1, True, {})


def test_a_seeds_arms_stay_together_and_trials_need_not() -> None:
    jobs = [job(arm, seed) for seed in (0, 1) for arm in ("a", "b")]
    assert [[one.name for one in block] for block in group_by_seed(jobs)] == [
        ["a/seed-0", "b/seed-0"],
        ["a/seed-1", "b/seed-1"],
    ]
    assert len(group_by_seed([job(f"t{n}", 0, trial=True) for n in range(7)])) == 7
    many = group_by_seed([job(f"t{n}", 0, trial=True) for n in range(2500)])
    assert len(many) <= 1000
    assert sum(map(len, many)) == 2500


NODES = [
    NodeFacts("cpu", True, "c1", 32, 64_000, "", "1-00:00:00", "idle"),
    NodeFacts("gpu", False, "g1", 64, 256_000, "gpu:a100:4(S:0-1)", "infinite", "mix"),
    NodeFacts("gpu", False, "g2", 64, 256_000, "gpu:h100:2", "infinite", "mix"),
]


@pytest.mark.parametrize(
    "wanted",
    [
        settings(),
        settings(partition="gpu", gres="gpu:4", time="10-0"),
        settings({"devices_per_run": 2}, partition="gpu", gres="gpu:h100:2"),
        settings(partition="cpu,gpu", cpus=64, memory="250000M"),
        settings({"devices_per_run": 4}),
    ],
)
def test_what_some_node_has_is_asked_for(wanted: Execution) -> None:
    require_resources(wanted, NODES)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (settings(partition="gpus"), "Slurm has no partition 'gpus'; there are cpu, gpu. Did you mean 'gpu'?"),
        (settings(partition="gpu", gres="gpu:h100:4"), "generic resources there: gpu:a100:4, gpu:h100:2."),
        (
            settings(time="2-0"),
            "execution.slurm.time is 2-0, but the default partition lets a job take 1-00:00:00 at most",
        ),
        (
            settings({"devices_per_run": 8}, partition="gpu", gres="gpu:4"),
            "devices_per_run is 8, but each job asks for 4 GPUs",
        ),
        (
            settings({"devices_per_run": 64}),
            "devices_per_run is 64, which takes 64 cores, but no node of the default partition",
        ),
        (
            settings({"threads": 64}),
            "execution.threads is 64, but no node of the default partition has more than 32 cores.",
        ),
        (settings(memory="1T", partition="gpu"), "memory is 1T, but no node of partition gpu has more than 256000M."),
    ],
)
def test_what_no_node_has_is_refused_in_a_sentence(wanted: Execution, said: str) -> None:
    with pytest.raises(SlurmError) as error:
        require_resources(wanted, NODES)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_no_slurm_on_the_path_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmError, match=r"no Slurm here: sbatch, squeue, .* not found on the PATH"):
        require_slurm()
    with pytest.raises(SlurmError):
        make_slurm_executor(settings(), tmp_path)


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        ("RUNNING", "n1", ""),
        ("COMPLETING", "n1", ""),
        ("PENDING", "Resources", "for free nodes"),
        ("PENDING", "JobArrayTaskLimit", "for others of the study, as max_parallel says"),
        ("PENDING", "QOSMaxCpuPerUserLimit", "since a limit of the account is reached (QOSMaxCpuPerUserLimit)"),
        ("PENDING", "ReqNodeNotAvail, UnavailableNodes:n2", "for nodes that are down, drained or reserved (n2: fan)"),
        ("PENDING", "SomethingNew", "(SomethingNew)"),
    ],
)
def test_states_in_words(state: str, reason: str, words: str) -> None:
    task = QueuedTask("7", 0, state, reason, "")
    assert reason_of(task, "n2: fan") == words
    assert state_of(task) == ("running" if words == "" else "waiting")


def test_the_queue_is_asked_once_for_a_study(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def answer(*order: str, **_: Any) -> str:
        asked.append(order)
        return "12|0|RUNNING|n1|n1\n12|3|PENDING||(ReqNodeNotAvail, UnavailableNodes:a|b)\n13|N/A|PENDING||(Priority)\n"

    monkeypatch.setattr(commands, "_ask", answer)
    found = commands.queue_of("fairtune-s")
    assert found[0] == QueuedTask("12", 0, "RUNNING", "n1", "n1")
    assert found[1] == QueuedTask("12", 3, "PENDING", "ReqNodeNotAvail, UnavailableNodes:a|b", "")
    assert found[2].task is None
    assert len(asked) == 1


@pytest.mark.parametrize("content", [b"", b"{}", b'{"arrays": 3}', b'{"arrays": [{"job": "1"}]}'])
def test_a_record_that_is_none_is_no_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "slurm.json").write_bytes(content)
    assert read_arrays(tmp_path) == []
    assert runs_in_queue(tmp_path, "s") == {}


def test_runs_are_found_in_the_queue_and_a_silent_slurm_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairtune.execution.executors.remote.job_files import write_submission

    submission = write_submission(tmp_path, [[job("a", 0), job("b", 0)], [job("a", 1)]], settings())
    write_arrays(tmp_path, [QueuedArray("12", submission.folder.name, (0, 1), ("11", "/x"))])
    assert read_arrays(tmp_path) == [QueuedArray("12", "1", (0, 1), ("11", "/x"))]
    monkeypatch.setattr(queue_states, "queue_of", lambda _: [QueuedTask("12", 0, "PENDING", "Priority", "")])
    found = runs_in_queue(tmp_path, "s")
    assert found.keys() == {"a/seed-0", "b/seed-0"}
    assert found["b/seed-0"].words == "job 12_0 waits behind jobs of higher priority"

    def silent(_: str) -> list[QueuedTask]:
        raise SlurmError("away")

    monkeypatch.setattr(queue_states, "queue_of", silent)
    assert runs_in_queue(tmp_path, "s") == {}
