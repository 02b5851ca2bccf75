"""What this machine offers: cores and memory, within the limits of a container, and the processor time that it has spent."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

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
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        count = getattr(os, "process_cpu_count", os.cpu_count)  # the first is there from Python 3.13 on
        cores = count() or 1
    quotas = [quota / period for quota, period in _cpu_quotas() if quota > 0 and period > 0]
    return max(1, min([cores, *(int(quota) for quota in quotas)]))


def available_memory() -> int:
    """Bytes that programs may still take without anything being swapped out or killed, a container's limit included."""
    import psutil

    return max(0, min([int(psutil.virtual_memory().available), *_memory_left()]))


def memory_kills() -> int:
    """How many processes the system has ended because memory ran out, since it started; 0 where it does not count them."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text(encoding="utf-8").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


def busy_seconds() -> tuple[float, float]:
    """Processor seconds that all processes have used since the machine started, and those that its host took away."""
    import psutil

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


def _cpu_quotas() -> Iterator[tuple[float, float]]:
    """Processor time that each group of ours may take in a period."""
    for folder in _groups():
        with contextlib.suppress(OSError, ValueError):
            quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
            yield float(quota), float(period)  # "max" is no number, and no limit
    with contextlib.suppress(OSError, ValueError):  # the first version of groups
        yield _number(CGROUPS / "cpu" / "cpu.cfs_quota_us"), _number(CGROUPS / "cpu" / "cpu.cfs_period_us")


def _memory_left() -> Iterator[int]:
    """What each group of ours may still take; files that are only kept in memory do not count as taken."""
    for folder in _groups():
        with contextlib.suppress(OSError, ValueError):
            kept = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="utf-8").splitlines())
            free = _number(folder / "memory.max") - _number(folder / "memory.current")
            yield int(free) + int(kept.get("inactive_file", 0))
    with contextlib.suppress(OSError, ValueError):
        limit, used = (_number(CGROUPS / "memory" / f"memory.{name}_in_bytes") for name in ("limit", "usage"))
        yield int(limit - used)


def _groups() -> Iterator[Path]:
    """The folder of our control group and those above it; each may set a limit."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            number, _, place = line.split(":", 2)
            if number == "0":
                folder = CGROUPS / place.strip("/")
                yield from (one for one in (folder, *folder.parents) if one.is_relative_to(CGROUPS))


def _number(file: Path) -> float:
    return float(file.read_text(encoding="utf-8"))
