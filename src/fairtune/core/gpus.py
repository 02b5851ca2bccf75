"""GPUs as NVML describes them: which there are, which this process may use, and how each one is doing.

They are numbered in the order of the PCI bus, as `nvidia-smi` does, and as CUDA does in workers (CUDA_DEVICE_ORDER is PCI_BUS_ID).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
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
    """A GPU.

    Args:
        number: in the order of the PCI bus; None of what CUDA_VISIBLE_DEVICES names and NVML does not list, such as a MIG part.
        uuid: by which NVML and CUDA know it.
    """

    number: int | None
    uuid: str
    name: str | None = None

    @property
    def cuda_name(self) -> str:
        """What CUDA_VISIBLE_DEVICES calls it."""
        return self.uuid if self.number is None else str(self.number)


@contextmanager
def nvml_held() -> Iterator[Any]:
    """NVML, loaded meanwhile; None where there is none. Callers that ask repeatedly hold it, so that it is loaded once."""
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
    """Every GPU of the machine that answers; None where NVML cannot be asked."""
    with nvml_held() as nvml:
        if nvml is None:
            return None
        found = []
        try:
            for index in range(nvml.nvmlDeviceGetCount()):
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                place, uuid = nvml.nvmlDeviceGetPciInfo(handle), _text(nvml.nvmlDeviceGetUUID(handle))
                name = _asker(nvml, uuid)("nvmlDeviceGetName")
                found.append(((place.domain, place.bus, place.device), uuid, None if name is None else _text(name)))
        except nvml.NVMLError:
            return None
        return tuple(Gpu(number, uuid, name) for number, (_, uuid, name) in enumerate(sorted(found)))


def visible_gpus() -> list[Gpu] | None:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves to this process, in its order; None where NVML cannot be asked.

    As in CUDA, the first entry that names nothing ends the list, and a list that names a GPU twice shows none.
    """
    there, listed = find_gpus(), os.environ.get(VISIBLE)
    if there is None or listed is None:
        return None if there is None else list(there)
    found: list[Gpu] = []
    for entry in listed.split(","):
        if (gpu := _named(entry.strip(), there)) is None:
            break
        found.append(gpu)
    return found if len(set(found)) == len(found) else []


def _named(entry: str, there: Sequence[Gpu]) -> Gpu | None:
    """The GPU that an entry names by its number or the beginning of its uuid; a MIG part is taken at its word."""
    if entry.startswith("MIG-"):
        return Gpu(None, entry)
    if entry.startswith("GPU-"):
        found = [gpu for gpu in there if gpu.uuid.startswith(entry)]
    else:
        found = [gpu for gpu in there if str(gpu.number) == entry]
    return found[0] if len(found) == 1 else None


def driver_version() -> str | None:
    with nvml_held() as nvml:
        try:
            return None if nvml is None else _text(nvml.nvmlSystemGetDriverVersion())
        except nvml.NVMLError:
            return None


def describe_gpu(gpu: Gpu, own: Collection[int] | None = None) -> dict[str, Any]:
    """How a GPU is doing; None for each question that it does not answer.

    Args:
        own: processes that do not count as foreign; None is this process and the one that started it.
    """
    own = (os.getpid(), os.getppid()) if own is None else own
    with nvml_held() as nvml:
        ask = _asker(nvml, gpu.uuid)
        used, memory = ask("nvmlDeviceGetUtilizationRates"), ask("nvmlDeviceGetMemoryInfo")
        processes = ask("nvmlDeviceGetComputeRunningProcesses") if sees_all_processes() else None
        reasons = ask("nvmlDeviceGetCurrentClocksEventReasons")
        return {
            "index": gpu.number,
            "name": gpu.name,
            "temperature": ask("nvmlDeviceGetTemperature", getattr(nvml, "NVML_TEMPERATURE_GPU", 0)),
            "utilisation": used.gpu if used else None,
            "clock_mhz": ask("nvmlDeviceGetClockInfo", getattr(nvml, "NVML_CLOCK_SM", 1)),
            "slowed": None if reasons is None else sorted({why for bit, why in SLOWED.items() if reasons & bit}),
            "memory_used_bytes": memory.used if memory else None,
            "memory_bytes": memory.total if memory else None,
            "other_processes": None if processes is None else len({one.pid for one in processes} - set(own)),
        }


def sees_all_processes() -> bool:
    """Whether process ids here are those that the GPU's driver reports; in most containers they are not."""
    try:
        return str(OWN_SPACE.readlink()) == FIRST_SPACE
    except OSError:
        return False


def _asker(nvml: Any, uuid: str) -> Callable[..., Any]:
    """Asks NVML about a GPU; None where it does not answer, since not every GPU answers every question."""

    def ask(question: str, *arguments: Any) -> Any:
        if nvml is None or not hasattr(nvml, question):
            return None
        try:
            return getattr(nvml, question)(nvml.nvmlDeviceGetHandleByUUID(uuid), *arguments)
        except nvml.NVMLError:
            return None

    return ask


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
