"""One of the processes that share a run. Started as `python -m fairtune.execution.rank FOLDER`, by torchrun's agent.

The folder is that of `shared_run.py`, which started the agent: the job lies there, and what this process has to say goes there. It
ends as soon as the process that started it has ended, however that was.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import distributed
from torch._C._distributed_c10d import FileStore

from fairtune.core.errors import LeaseLost, Stopped
from fairtune.core.files import write_json
from fairtune.core.leases import followed
from fairtune.core.stages import watched
from fairtune.execution.device_health import DeviceHealth
from fairtune.execution.executors.performer import StageReports
from fairtune.execution.job import Job, describe_failure
from fairtune.execution.run import perform_alone
from fairtune.execution.shared_run import JOB, PROGRESS, REPORT_SECONDS, STOP, STORE, outcome_file, pid_file
from fairtune.training.ranks import Ranks

LOOK_SECONDS = 0.1
"""How often it looks whether who started it is still there."""
LONGEST_WAIT = timedelta(days=1)
"""For the others: one may tokenise, or save, for long; a dead one is noticed by its connection."""


def main() -> None:
    folder = Path(sys.argv[1])
    order: dict[str, Any] = json.loads((folder / JOB).read_text(encoding="utf-8"))
    write_json(pid_file(folder, int(os.environ["RANK"])), os.getpid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it is asked, and passes it on
    threading.Thread(target=_end_with, args=(order["parent"], order["began"], folder), daemon=True).start()
    job, device, threads = Job(**order["job"]), str(order["device"]), order["threads"]
    if threads is not None:
        torch.set_num_threads(threads)
    ranks, health = join_group(folder / STORE, device, job.sharding == "full"), DeviceHealth(device)
    try:
        with followed(job.run.path, order["lease"]):
            outcome = _perform(job, device, ranks, folder)
    except Stopped:
        outcome = {"stopped": True}
    except LeaseLost as error:
        outcome = {"lease_lost": str(error)}
    except Exception as error:
        result, details = describe_failure(job, error)
        outcome = {"failed": result, "details": details, "lost": _is_lost_connection(error)}
        if (fault := health.fault(error)) is not None:
            outcome = {"device_lost": fault}
    write_json(outcome_file(folder, ranks.rank), {**outcome, "time": time.time()})
    sys.stdout.flush()
    sys.stderr.flush()
    # Without taking the group down, for which the others would be waited for.
    os._exit(0 if outcome.keys() <= {"result", "stopped"} else 1)


def _perform(job: Job, device: str, ranks: Ranks, folder: Path) -> dict[str, Any]:
    stop = folder / STOP

    def check_stop() -> None:
        if stop.exists():
            raise Stopped

    report = _Reports(folder / PROGRESS) if ranks.leads else None
    with watched(StageReports(report) if report else None):
        result = perform_alone(job, device, check_stop, report or (lambda _: None), ranks)
    ranks.agreed(False)  # all have come this far, so none fails for want of another
    return {"result": result} if ranks.leads else {}


def join_group(store: Path, device: str, shards: bool) -> Ranks:
    """Find the others, through a file and the loopback interface alone; the environment says who this is, as torchrun sets it."""
    rank, size, local = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = loopback
    backend, own = "gloo", None
    if device.startswith("cuda"):
        torch.cuda.set_device(local)
        backend, own = "cpu:gloo,cuda:nccl", torch.device("cuda", local)
    others = FileStore(str(store), size)
    distributed.init_process_group(
        backend, store=others, rank=rank, world_size=size, timeout=LONGEST_WAIT, device_id=own
    )
    return Ranks(rank, size, shards)


def _end_with(parent: int, began: float, folder: Path) -> None:
    """End this process, at once, when another has ended. A pipe would say it sooner, but torchrun's agent hands none on."""
    while True:
        try:
            process = psutil.Process(parent)
            alive = process.create_time() == began and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            alive = False
        if not alive:
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(1)
        time.sleep(LOOK_SECONDS)


def _is_lost_connection(error: BaseException) -> bool:
    """Whether it failed only because another process did."""
    words = str(error)
    return isinstance(error, RuntimeError) and any(
        sign in words
        for sign in ("Connection closed by peer", "Connection reset by peer", "gloo", "NCCL", "Broken pipe")
    )


class _Reports:
    """How far the run is, as lines of a file that the process which started it reads."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._last = 0.0

    def __call__(self, values: dict[str, Any]) -> None:
        if values.get("phase") != "train" or time.monotonic() - self._last >= REPORT_SECONDS:
            self._last = time.monotonic()
            self._file.write(json.dumps(values) + "\n")
            self._file.flush()


if __name__ == "__main__":
    main()
