"""A timing session: one process steps all arms in turns, this one listens, watches the machine and says when it is enough."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairtune.core.errors import FairtuneError, Stopped
from fairtune.execution.executors.slots import device_gpu, find_devices, worker_environment
from fairtune.execution.stopwatch.machine_watch import MachineWatch
from fairtune.ledger.environment import capture_environment
from fairtune.ledger.timings import AGAIN
from fairtune.study.plan import Plan
from fairtune.study.run_spec import RunSpec

WORKER = (sys.executable, "-m", "fairtune.execution.stopwatch.worker")
FEWEST_ROUNDS = 12
"""Rounds that are measured however long they take: fewer say nothing."""
END_SECONDS = 60.0
Record = dict[str, Any]


def time_arms(
    plan: Plan,
    arms: Sequence[str],
    seconds: float,
    enough: Callable[[Record], bool],
    tell: Callable[[Record], None] = lambda _: None,
) -> Record:
    """Step arms in turns, together with a second copy of the reference, and return what was measured.

    Args:
        arms: the reference among them.
        seconds: the longest that steps are measured, warming up included; preparing the arms comes on top.
        enough: asked after rounds whether the record so far is precise enough.
        tell: called after every round.

    Raises:
        FairtuneError: an arm cannot be prepared, or the process died.
    """
    device, threads = find_devices(plan.study.execution.devices)[0], plan.study.execution.threads
    with tempfile.TemporaryDirectory() as scratch, (Path(scratch) / "log").open("w+") as log:
        record = _begin_record(plan, device, threads)
        jobs = make_jobs(plan, arms, Path(scratch))
        process = subprocess.Popen(
            [*WORKER, device, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            env=worker_environment(device, threads), start_new_session=True, encoding="utf-8",
        )  # fmt: skip
        try:
            with MachineWatch(process.pid, device_gpu(device)) as watch:
                record["samples"] = watch.samples  # the list itself, which grows
                _follow(process, jobs, record, seconds, enough, tell)
        except KeyboardInterrupt:
            if len(record["rounds"]) < FEWEST_ROUNDS:
                raise Stopped from None
            record["interrupted"] = True
        finally:
            _kill(process)
        if len(record["rounds"]) < FEWEST_ROUNDS or "failed" in record:
            log.seek(0)
            raise FairtuneError(_reason(record.get("failed"), log.read()))
    return record


def make_jobs(plan: Plan, arms: Sequence[str], scratch: Path) -> dict[str, RunSpec]:
    """The first run of each arm, and the reference's once more, in folders that are thrown away."""
    unsaved = {"checkpoint_every": "24h", "save_model": False}
    first = {arm: next(run for run in plan.runs if run.arm == arm).model_copy(update=unsaved) for arm in arms}
    jobs = {arm: run.at(scratch / "arms") for arm, run in first.items()}
    jobs[AGAIN] = first[plan.study.compare.to].at(scratch / "again")
    return jobs


def _begin_record(plan: Plan, device: str, threads: int) -> Record:
    keys = {run.arm: run.key for run in reversed(plan.runs)}
    return {
        "format": 1,
        "study": plan.study.study,
        "plan": plan.hash,
        "time": round(time.time(), 3),
        "device": device,
        "threads": threads,
        "environment": capture_environment(device),
        "reference": plan.study.compare.to,
        "keys": keys,
        "arms": {},
        "warm_up": 0,
        "rounds": [],
        "samples": [],
    }


def _follow(
    process: subprocess.Popen[str],
    jobs: Mapping[str, RunSpec],
    record: Record,
    seconds: float,
    enough: Callable[[Record], bool],
    tell: Callable[[Record], None],
) -> None:
    """Give the process its jobs, take its messages down, and end its input once it is enough."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # it died; the end of its output says so
        process.stdin.write(json.dumps({name: job.as_json() for name, job in jobs.items()}) + "\n")
        process.stdin.flush()
    began, asked, closed = time.monotonic(), 0, False
    for line in process.stdout:
        if not line.endswith("\n"):  # the end of the process may cut one off
            return
        message = json.loads(line)
        if message["type"] == "ready":
            record["arms"], began = message["arms"], time.monotonic()
        elif message["type"] == "round":
            if message["warm"]:
                record["rounds"].append({k: v for k, v in message.items() if k not in ("type", "warm", "number")})
            else:
                record["warm_up"] += 1
            record["seconds"] = round(time.monotonic() - began, 2)
            tell(record)
            count = len(record["rounds"])
            if closed or count < FEWEST_ROUNDS:
                continue
            due = count >= asked * 1.1
            asked = count if due else asked
            if time.monotonic() - began >= seconds or (due and enough(record)):
                closed = True
                process.stdin.close()
                ending = threading.Timer(END_SECONDS, process.kill)
                ending.daemon = True
                ending.start()
        elif message["type"] == "done":
            for name, memory in message["memory"].items():
                record["arms"][name]["memory"] = memory
        elif message["type"] == "failed":
            record["failed"] = message["reason"]


def _kill(process: subprocess.Popen[str]) -> None:
    """End it, with what it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _reason(said: str | None, log: str) -> str:
    if said is not None:
        memory = "memory" in said and " All arms are held at once; time fewer with --arms."
        return f"{said}{memory or ''}"
    last = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "it said nothing")
    return (
        f"the process that was timed ended before it had measured enough ({last}). All arms are held in memory at once: if there "
        "is too little of it, time fewer with --arms."
    )
