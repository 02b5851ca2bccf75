"""What this machine offers: cores and memory, within the limits of a container, and the processor time that it has spent."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

CGROUPS = Path("/sys/fs/cgroup")
"""Where Linux keeps what a container may use."""
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
"""Threads wait for each other by spinning, so a core that another program takes holds them all up. These sleep after a few
microseconds, which costs little on a quiet machine."""
COUNTS = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


def available_cores() -> int:
    """Cores that this process may use: all of the machine's where the system cannot tell (macOS)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for group in _groups():
        with suppress(OSError, ValueError):  # "max" is no number, and no limit
            quota, period = map(float, (group / "cpu.max").read_text(encoding="utf-8").split())
            cores = min(cores, int(quota / period))
    return max(1, cores)


def available_memory() -> int:
    """Bytes that programs may still take without anything being swapped out or killed, a container's limit included."""
    free = float(psutil.virtual_memory().available)
    for group in _groups():
        with suppress(OSError, ValueError):
            most, used = (float((group / f"memory.{name}").read_text(encoding="utf-8")) for name in ("max", "current"))
            kept = dict(line.split() for line in (group / "memory.stat").read_text(encoding="utf-8").splitlines())
            free = min(free, most - used + float(kept.get("inactive_file", 0)))  # cached files give way
    return max(0, int(free))


def _groups() -> Iterator[Path]:
    """The folder of our control group and those above it; each may set a limit."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        folder = CGROUPS / next(line[3:] for line in lines if line.startswith("0::")).strip("/")
        yield from (one for one in (folder, *folder.parents) if one.is_relative_to(CGROUPS))


def memory_kills() -> int:
    """How many processes the system has ended because memory ran out, since it started; 0 where it does not count them."""
    with suppress(OSError):
        for line in Path("/proc/vmstat").read_text(encoding="utf-8").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def busy_seconds() -> tuple[float, float]:
    """Processor seconds that all processes have used since the machine started, and those that its host took away."""
    times = psutil.cpu_times()
    idle, stolen = times.idle + getattr(times, "iowait", 0.0), getattr(times, "steal", 0.0)
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # Linux counts them in user time too
    return sum(times) - idle - stolen - guests, stolen


def thread_environment(threads: int) -> dict[str, str]:
    """What tells every library of a new process how many threads to use, and several threads to sleep while they wait."""
    return {**dict.fromkeys(COUNTS, str(threads)), **(PATIENT if threads > 1 else {})}


def wait_asleep() -> None:
    """Have this process's threads sleep while they wait, unless torch is there already or the user has said how they wait.

    For processes of fairtune's own; in a user's, threads are the user's business.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in PATIENT):
        os.environ.update(PATIENT)
