"""Places for workers: how many fit on each device, and what each is given of it.

Threads of one process wait for each other by spinning, so that a core which somebody else takes stops them all; and a study has
many runs that need nothing of each other. So a CPU gets a worker of one thread for each core.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from fairtune.core.machine import available_cores, available_memory
from fairtune.core.threads import thread_environment
from fairtune.execution.executors.memory_estimate import estimate_memory
from fairtune.execution.job import Job
from fairtune.ledger.environment import gpus
from fairtune.settings.execution import Execution
from fairtune.settings.values import AUTO

CPU = "cpu"


@dataclass(frozen=True)
class Slot:
    """A place for a worker.

    Args:
        name: of the worker, for its log.
        threads: of its own; None leaves that to torch.
    """

    device: str
    name: str
    threads: int | None


def find_devices(wanted: Sequence[str]) -> list[str]:
    """The devices to use, `auto` resolved: every GPU there is, else Apple's, else the CPU."""
    found: list[str] = []
    for device in wanted:
        if device == AUTO:
            devices = [f"cuda:{gpu['index']}" for gpu in gpus()]
            apple = sys.platform == "darwin" and os.uname().machine == "arm64"
            found += devices or (["mps"] if apple else [CPU])
        else:
            found.append("cuda:0" if device == "cuda" else device)
    return list(dict.fromkeys(found))


def find_slots(execution: Execution, jobs: Sequence[Job]) -> list[Slot]:
    """Where these jobs are performed: no more places than jobs, every device used before one is used twice."""
    devices = find_devices(execution.devices)
    counts = {device: _workers(device, execution, jobs) for device in devices}
    found = [
        Slot(
            device,
            device.replace(":", "-") + (f"-{number + 1}" if counts[device] > 1 else ""),
            execution.threads if device == CPU else None,
        )
        for number in range(max(counts.values()))
        for device in devices
        if number < counts[device]
    ]
    return found[: len(jobs)]


def _workers(device: str, execution: Execution, jobs: Sequence[Job]) -> int:
    if execution.workers != AUTO:
        return int(execution.workers)
    if device != CPU:
        return 1
    cores = max(1, available_cores() // execution.threads)
    return max(1, min(cores, len(jobs), _fitting(jobs))) if min(cores, len(jobs)) > 1 else 1


def _fitting(jobs: Sequence[Job]) -> int:
    """How many runs fit into memory side by side, if all are like the largest of them."""
    different = {(job.model["identity"], str(job.plan["settings"]["train"])): job for job in jobs}
    return available_memory() // max(estimate_memory(job) for job in different.values())


def worker_environment(device: str, threads: int | None = 1) -> dict[str, str]:
    """A worker's environment: one device, repeatable CUDA arithmetic, and memory that is reused rather than returned.

    Args:
        threads: on a CPU; None leaves that to torch.
    """
    environment = dict(os.environ)
    defaults = {
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "TOKENIZERS_PARALLELISM": "true",
        # glibc maps and unmaps every large tensor, so each step pays for fresh pages; keeping them saves 5-10 % of a CPU step
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "MALLOC_TOP_PAD_": str(64 << 20),
    }
    for name, value in defaults.items():
        environment.setdefault(name, value)
    if device == CPU and threads is not None:
        environment.update(thread_environment(threads))
    if device.startswith("cuda:"):
        environment["CUDA_VISIBLE_DEVICES"] = _visible(device.removeprefix("cuda:"))
    return environment


def _visible(index: str) -> str:
    """The device's number as CUDA counts it, when only some devices are visible to this process."""
    visible = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part]
    return visible[int(index)] if int(index) < len(visible) else index


def visible_number(device: str) -> int | None:
    """The number of `cuda:1` as the driver counts it; None of other devices, and of those that are named otherwise."""
    index = device.removeprefix("cuda:")
    found = _visible(index) if device.startswith("cuda:") and index.isdecimal() else ""
    return int(found) if found.isdecimal() else None
