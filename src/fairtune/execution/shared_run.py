"""One run in several processes, from the view of the one that was given the job: start them, pass on, wait, tell what came of it.

torchrun's agent starts the processes (`rank.py`), notices the death of one and ends the others. This process holds the run's lock
meanwhile. They talk through a folder of their own on this machine's disk: the job and the wish to stop in one direction, progress
and outcomes in the other. Nothing listens but gloo and NCCL among the processes themselves, on the loopback interface.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from fairtune.core.errors import DeviceLost, LeaseLost, RunFailure, Stopped
from fairtune.core.files import write_json
from fairtune.core.leases import held_generation
from fairtune.core.machine import memory_kills
from fairtune.execution.job import Job, failed_result, record_failure

JOB, STOP, STORE, PROGRESS = "job.json", "stop", "store", "progress.jsonl"
REPORT_SECONDS = 0.2
WAIT_SECONDS = 0.05
END_SECONDS = 5
"""How long a process may take to end once another has failed."""
KILLED = -9
Report = Callable[[dict[str, Any]], None]


def outcome_file(folder: Path, rank: int) -> Path:
    return folder / f"outcome-{rank}.json"


def pid_file(folder: Path, rank: int) -> Path:
    return folder / f"pid-{rank}.json"


def perform_shared(job: Job, device: str, check_stop: Callable[[], None], report: Report) -> dict[str, Any]:
    """Perform a run in as many processes as its job says; they record it. Returns its result, finished or failed.

    Raises:
        Stopped: it was asked to stop; its state is saved and it can go on later.
        DeviceLost: one of its GPUs has failed.
        LeaseLost: another process has taken it over.
    """
    if device == "mps":
        raise RunFailure(
            "devices_per_run is more than 1, but Apple's GPU is one device; set devices_per_run: 1, or devices: cpu"
        )
    kills = memory_kills()
    with tempfile.TemporaryDirectory(prefix="fairtune-run-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        me = psutil.Process()
        order = {
            "job": job.as_json(),
            "device": device,
            "threads": _threads(device),
            "parent": me.pid,
            "began": me.create_time(),
            "lease": held_generation(job.run.path),
        }
        write_json(folder / JOB, order)
        agent = _Agent(folder, job.processes)
        agent.start()
        stopping = False
        progress = _lines(folder / PROGRESS)
        try:
            while agent.is_alive():
                agent.join(WAIT_SECONDS)
                for values in progress:
                    if values is None:
                        break
                    report(values)
                if not stopping:
                    try:
                        check_stop()
                    except Stopped:
                        stopping = True
                        (folder / STOP).touch()
        finally:
            agent.end()
        return _result(job, folder, agent, stopping, memory_kills() > kills)


def _threads(device: str) -> int | None:
    """Of each process: as many as this one was given."""
    if device != "cpu":
        return None
    import torch

    return torch.get_num_threads()


class _Agent(threading.Thread):
    """torchrun's agent. In a thread, since in the main one it would take over the signals by which runs are stopped.

    Attributes:
        codes: how the processes ended that failed, by rank.
        problem: what kept the agent itself from its work.
    """

    def __init__(self, folder: Path, processes: int) -> None:
        super().__init__(name="fairtune-ranks", daemon=True)
        self._folder, self._processes = folder, processes
        self.codes: dict[int, int] = {}
        self.problem: Exception | None = None

    def run(self) -> None:
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        from torch.distributed.launcher.api import LaunchConfig, elastic_launch

        # It warns that without signals processes may be left behind; these end by themselves when this one does.
        logging.getLogger("torch.distributed.elastic").setLevel(logging.ERROR)
        os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # else it listens, on every interface
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=self._processes,
            run_id=self._folder.name,
            rdzv_backend="c10d",
            rdzv_endpoint=str(self._folder / "rendezvous"),
            rdzv_configs={"store_type": "file"},
            local_addr="127.0.0.1",
            max_restarts=0,
            monitor_interval=0.1,
            shutdown_timeout=END_SECONDS,
            logs_specs=DefaultLogsSpecs(log_dir=str(self._folder / "agent")),
        )
        try:
            elastic_launch(config, sys.executable)("-m", "fairtune.execution.rank", str(self._folder))
        except ChildFailedError as error:
            self.codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        except Exception as error:
            self.problem = error

    def end(self) -> None:
        """Kill what is left of the processes, where this one was interrupted while it waited for them."""
        for rank in range(self._processes if self.is_alive() else 0):
            with contextlib.suppress(OSError, ValueError, psutil.NoSuchProcess):
                psutil.Process(json.loads(pid_file(self._folder, rank).read_text(encoding="utf-8"))).kill()
        self.join(END_SECONDS)


def _lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """What was written to a file since, line by line; None where there is nothing more for now."""
    while not path.exists():
        yield None
    with path.open(encoding="utf-8") as file:
        begun = ""
        while True:
            begun += file.readline()
            if begun.endswith("\n"):
                yield json.loads(begun)
                begun = ""
            else:
                yield None


def _result(job: Job, folder: Path, agent: _Agent, stopping: bool, starved: bool) -> dict[str, Any]:
    """What came of a run whose processes have ended."""
    if agent.problem is not None:
        raise agent.problem
    outcomes = {}
    for rank in range(job.processes):
        if (path := outcome_file(folder, rank)).exists():
            outcomes[rank] = json.loads(path.read_text(encoding="utf-8"))
    if "result" in outcomes.get(0, {}):  # of the last thing that it does, when all have come through
        return dict(outcomes[0]["result"])
    failures = sorted(
        (found for found in outcomes.values() if "failed" in found), key=lambda one: (one["lost"], one["time"])
    )
    for found in outcomes.values():
        if "device_lost" in found:
            raise DeviceLost(found["device_lost"])
        if "lease_lost" in found:
            raise LeaseLost(found["lease_lost"])
    own = [found for found in failures if not found["lost"]]
    if own:
        record_failure(job, own[0]["failed"], own[0]["details"])
        return dict(own[0]["failed"])
    if stopping and any(found.get("stopped") for found in outcomes.values()):
        raise Stopped
    died = [(rank, code) for rank, code in agent.codes.items() if rank not in outcomes]
    if not died and failures:
        record_failure(job, failures[0]["failed"], failures[0]["details"])
        return dict(failures[0]["failed"])
    result = failed_result(job, _death(died, job.processes, starved), "killed")
    record_failure(job, result)
    return result


def _death(died: list[tuple[int, int]], processes: int, starved: bool) -> str:
    """Why a run has ended of which a process did, without a word."""
    died.sort(key=lambda one: one[1] == -signal.SIGTERM)  # by which the agent ended the others
    rank, code = died[0] if died else (0, 0)
    which = f"process {rank + 1} of the {processes} that share the run"
    smaller = "take a smaller batch_size with a larger accumulate"
    if code == KILLED and starved:
        return f"the machine ran out of memory, so the system ended {which}; {smaller}"
    if code == KILLED:
        return f"{which} was killed (signal 9), most often because the machine ran out of memory; then {smaller}"
    if code < 0:
        return f"{which} was ended by signal {-code} ({signal.Signals(-code).name})"
    return f"{which} ended with exit code {code}; the worker's log in the study's folder says why"
