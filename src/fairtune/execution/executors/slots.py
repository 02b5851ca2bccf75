"""Places for workers: how many fit on each device, and what environment each one gets.

Threads of one process wait for each other by spinning, so a core that another program takes stops them all; and a study has many
independent runs. So a CPU gets a worker of one thread for each core.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from fairtune.core.errors import DeviceError
from fairtune.core.machine import (
    BY_BUS,
    ORDER,
    VISIBLE,
    Gpu,
    available_cores,
    available_memory,
    thread_environment,
    visible_gpus,
)
from fairtune.execution.executors.memory_estimate import estimate_memory
from fairtune.settings.execution import Execution
from fairtune.settings.values import AUTO
from fairtune.study.run_spec import RunSpec

CPU, CUDA = "cpu", "cuda:"


@dataclass(frozen=True)
class Slot:
    """A place for a worker.

    Args:
        device: such as `cpu` or `cuda:1`, the second GPU that this process sees.
        name: of the worker, for its log.
        threads: of the worker; None leaves that to torch.
        gpu: that it sees; None where it has none, or where NVML cannot be asked.
    """

    device: str
    name: str
    threads: int | None
    gpu: Gpu | None = None


def find_devices(wanted: Sequence[str]) -> list[str]:
    """The devices to use, `auto` resolved: every GPU that is visible, else Apple's, else the CPU.

    Raises:
        DeviceError: one that is named is not there.
    """
    there = visible_gpus()
    found: list[str] = []
    for device in wanted:
        if device == AUTO:
            devices = [f"{CUDA}{index}" for index in range(len(there or ()))]
            apple = sys.platform == "darwin" and os.uname().machine == "arm64"
            found += devices or (["mps"] if apple else [CPU])
        else:
            found.append("cuda:0" if device == "cuda" else device)
            if there is not None and device.startswith("cuda") and _index(found[-1]) >= len(there):
                listed = f" ({VISIBLE} is {os.environ[VISIBLE]!r})" if VISIBLE in os.environ else ""
                raise DeviceError(
                    f"execution.devices names {device}, but this machine has {len(there) or 'no'} visible "
                    f"GPU{'s' if len(there) > 1 else ''}{listed}. Name one that is there, or make others visible with {VISIBLE}."
                )
    return list(dict.fromkeys(found))


def device_gpu(device: str) -> Gpu | None:
    """The GPU that a device such as `cuda:1` is; None of other devices, and where NVML cannot be asked."""
    there = (visible_gpus() or []) if device.startswith(CUDA) else []
    return there[_index(device)] if there and _index(device) < len(there) else None


def find_slots(execution: Execution, jobs: Sequence[RunSpec]) -> list[Slot]:
    """Where these jobs can be performed, every device used before one is used twice.

    Raises:
        DeviceError: a device that is named is not there.
    """
    devices = find_devices(execution.devices)
    counts = {device: _workers(device, execution, jobs) for device in devices}
    return [
        Slot(
            device,
            device.replace(":", "-") + (f"-{number + 1}" if counts[device] > 1 else ""),
            execution.threads if device == CPU else None,
            device_gpu(device),
        )
        for number in range(max(counts.values()))
        for device in devices
        if number < counts[device]
    ]


def _index(device: str) -> int:
    return int(device.removeprefix(CUDA))


def _workers(device: str, execution: Execution, jobs: Sequence[RunSpec]) -> int:
    """How many runs go side by side on a device: on a CPU as many as it has cores and memory for, all being like the largest."""
    if execution.workers != AUTO:
        return int(execution.workers)
    cores = available_cores() // execution.threads if device == CPU else 1
    if min(cores, len(jobs)) <= 1:
        return 1
    different = {(job.model.identity, str(job.settings.train)): job for job in jobs}
    fitting = available_memory() // max(estimate_memory(job) for job in different.values())
    return max(1, min(cores, len(jobs), fitting))


def worker_environment(device: str, threads: int | None = 1) -> dict[str, str]:
    """A worker's environment: its device alone, repeatable CUDA arithmetic, and memory that is reused rather than returned.

    Args:
        threads: on a CPU; None leaves that to torch.
    """
    environment = {
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "TOKENIZERS_PARALLELISM": "true",
        # glibc maps and unmaps every large tensor, so each step pays for fresh pages; keeping them saves 5-10 % of a CPU step
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "MALLOC_TOP_PAD_": str(64 << 20),
        **os.environ,
        ORDER: BY_BUS,  # as NVML counts
    }
    if device == CPU and threads is not None:
        environment.update(thread_environment(threads))
    if device.startswith(CUDA):
        gpu, index = device_gpu(device), _index(device)
        listed = [entry for entry in os.environ.get(VISIBLE, "").split(",") if entry]
        environment[VISIBLE] = str(gpu.number) if gpu else listed[index] if index < len(listed) else str(index)
    return environment
