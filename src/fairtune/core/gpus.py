"""GPUs as NVML describes them: which there are, which this process may use, and how each one is doing.

They are numbered in the order of the PCI bus, as `nvidia-smi` does, and as CUDA does in workers (CUDA_DEVICE_ORDER is PCI_BUS_ID).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER, BY_BUS = "CUDA_DEVICE_ORDER", "PCI_BUS_ID"
SLOWED = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}
"""Why a GPU runs slower than it could, by NVML's bits; others, such as being idle, do not count."""
OWN_SPACE, FIRST_SPACE = Path("/proc/self/ns/pid"), "pid:[4026531836]"
"""Where Linux names this process's space of process ids, and how it names the machine's own."""


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
