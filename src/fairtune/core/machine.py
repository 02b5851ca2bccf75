"""What this machine offers: cores and memory, within the limits of a container, the processor time that it has spent, and GPUs.

GPUs are as NVML describes them, in the order of the PCI bus, as `nvidia-smi` numbers them, and CUDA in workers (CUDA_DEVICE_ORDER
is PCI_BUS_ID).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

CGROUPS = Path("/sys/fs/cgroup")
"""Where Linux keeps what a container may use."""
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
"""Threads wait for each other by spinning, so a core that another program takes holds them all up. These sleep after a few
microseconds, which costs little on a quiet machine."""
COUNTS = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER, BY_BUS = "CUDA_DEVICE_ORDER", "PCI_BUS_ID"
SLOWED = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}
"""Why a GPU runs slower than it could, by NVML's bits; others, such as being idle, do not count."""
OWN_SPACE, FIRST_SPACE = Path("/proc/self/ns/pid"), "pid:[4026531836]"
"""Where Linux names this process's space of process ids, and how it names the machine's own."""


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


@dataclass(frozen=True)
class Gpu:
    """A GPU: its number in the order of the PCI bus, and the uuid by which NVML and CUDA know it."""

    number: int
    uuid: str
    name: str | None = None


@contextmanager
def nvml_held() -> Iterator[Any]:
    """NVML, or None where there is none. Callers that ask repeatedly hold it, so that it is loaded once."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no driver, or a broken one
        yield None
        return
    try:
        yield pynvml
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def find_gpus() -> tuple[Gpu, ...] | None:
    """Every GPU of the machine; None where NVML cannot be asked."""
    with nvml_held() as nvml:
        if nvml is None:
            return None
        try:
            handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
            places = [(nvml.nvmlDeviceGetPciInfo(handle), nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
            uuids = [uuid for *_, uuid in sorted((p.domain, p.bus, p.device, uuid) for p, uuid in places)]
        except nvml.NVMLError:
            return None
        return tuple(Gpu(number, uuid, _ask(nvml, uuid, "Name")) for number, uuid in enumerate(uuids))


def visible_gpus() -> Sequence[Gpu] | None:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves to this process, in its order; None where NVML cannot be asked.

    As in CUDA, an entry is a number or the beginning of a uuid, and the first that names nothing ends the list.
    """
    if (there := find_gpus()) is None or (listed := os.environ.get(VISIBLE)) is None:
        return there
    found: list[Gpu] = []
    for entry in map(str.strip, listed.split(",")):
        named = [one for one in there if entry == str(one.number) or one.uuid.startswith(entry or "-")]
        if len(named) != 1:
            break
        found += named
    return found


def driver_version() -> str | None:
    with nvml_held() as nvml:
        try:
            return None if nvml is None else str(nvml.nvmlSystemGetDriverVersion())
        except nvml.NVMLError:
            return None


def describe_gpu(gpu: Gpu, own: Collection[int] | None = None) -> dict[str, Any]:
    """How a GPU is doing; None for what it does not answer. Processes are foreign but for `own`: this one and its parent."""
    own = (os.getpid(), os.getppid()) if own is None else own
    with nvml_held() as nvml:

        def ask(question: str, *arguments: Any) -> Any:
            return _ask(nvml, gpu.uuid, question, *arguments)

        used, memory = ask("UtilizationRates"), ask("MemoryInfo")
        processes = ask("ComputeRunningProcesses") if sees_all_processes() else None
        reasons = ask("CurrentClocksEventReasons")
        return {
            "index": gpu.number,
            "name": gpu.name,
            "temperature": ask("Temperature", getattr(nvml, "NVML_TEMPERATURE_GPU", 0)),
            "utilisation": used.gpu if used else None,
            "clock_mhz": ask("ClockInfo", getattr(nvml, "NVML_CLOCK_SM", 1)),
            "slowed": None if reasons is None else sorted({why for bit, why in SLOWED.items() if reasons & bit}),
            "memory_used_bytes": memory.used if memory else None,
            "memory_bytes": memory.total if memory else None,
            "other_processes": None if processes is None else len({one.pid for one in processes} - set(own)),
        }


def sees_all_processes() -> bool:
    """Whether process ids here are those that the GPU's driver reports; in most containers they are not."""
    with suppress(OSError):
        return str(OWN_SPACE.readlink()) == FIRST_SPACE
    return False


def _ask(nvml: Any, uuid: str, question: str, *arguments: Any) -> Any:
    """What NVML says about a GPU; None where it does not answer, since not every GPU answers every question."""
    if nvml is None:
        return None
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        return getattr(nvml, f"nvmlDeviceGet{question}")(handle, *arguments)
    except (nvml.NVMLError, AttributeError):
        return None
