"""GPUs as NVML tells of them: which there are, how each is just now, and whether one has failed.

They are counted in the order of the PCI bus, as `nvidia-smi` does, and CUDA too where CUDA_DEVICE_ORDER is PCI_BUS_ID. A part that
MIG made of a GPU is a GPU of its own, since that is what a process can be given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from fairtune.core.process_family import foreign_processes, head_of_family, is_of_family, sees_all_processes

SLOWED = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}
"""Why a GPU runs slower than it could, by NVML's bits; others, such as being idle, are none of it."""
GONE = ("NVML_ERROR_GPU_IS_LOST", "NVML_ERROR_GPU_NOT_FOUND", "NVML_ERROR_NOT_FOUND")
RESET = "NVML_ERROR_RESET_REQUIRED"


@dataclass(frozen=True)
class Gpu:
    """A GPU, or a part of one.

    Args:
        number: in the order of the PCI bus; parts have that of their GPU.
        uuid: by which NVML and CUDA know it; empty of one that no longer answers.
        part: of a part, its GPU instance and its compute instance.
        parent: of a part, the uuid of its GPU.
    """

    number: int
    uuid: str
    name: str | None = None
    part: tuple[int, int] | None = None
    parent: str = ""

    @property
    def title(self) -> str:
        """For messages."""
        return f"GPU {self.number}" + ("" if self.part is None else f" (MIG part {self.part[0]}/{self.part[1]})")

    @property
    def cuda_name(self) -> str:
        """What CUDA_VISIBLE_DEVICES calls it."""
        return self.uuid if self.part else str(self.number)


@contextmanager
def nvml_held() -> Iterator[Any]:
    """NVML, loaded meanwhile; None where there is none. Who asks again and again holds it, so that it is loaded once."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no driver, or one that fell over
        yield None
        return
    try:
        yield pynvml
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def find_gpus() -> tuple[Gpu, ...] | None:
    """Every GPU that there is; None where nobody can be asked."""
    with nvml_held() as nvml:
        if nvml is None:
            return None
        try:
            handles = [_handle(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError:
            return None
        places = [_asker(nvml, handle)("nvmlDeviceGetPciInfo") for handle in handles]
        if all(place is not None for place in places):
            where = [(place.domain, place.bus, place.device) for place in places]
            handles = [handle for _, handle in sorted(zip(where, handles, strict=True), key=lambda pair: pair[0])]
        return tuple(gpu for number, handle in enumerate(handles) for gpu in _gpus_of(nvml, number, handle))


def driver_version() -> str | None:
    with nvml_held() as nvml:
        if nvml is None:
            return None
        try:
            return _text(nvml.nvmlSystemGetDriverVersion())
        except nvml.NVMLError:
            return None


def describe_gpu(gpu: Gpu) -> dict[str, Any]:
    """How a GPU is now; None for each question that it does not answer."""
    with nvml_held() as nvml:
        handle = None if nvml is None else _handle_of(nvml, gpu.uuid)
        ask = _asker(nvml, handle)
        whole = _asker(nvml, _handle_of(nvml, gpu.parent)) if gpu.part and nvml is not None else ask
        used, memory = ask("nvmlDeviceGetUtilizationRates"), ask("nvmlDeviceGetMemoryInfo")
        processes = ask("nvmlDeviceGetComputeRunningProcesses")
        return {
            "index": gpu.number,
            "name": gpu.name,
            "temperature": whole("nvmlDeviceGetTemperature", getattr(nvml, "NVML_TEMPERATURE_GPU", 0)),
            "utilisation": used.gpu if used else None,
            "clock_mhz": whole("nvmlDeviceGetClockInfo", getattr(nvml, "NVML_CLOCK_SM", 1)),
            "slowed": _slowed(whole),
            "memory_used_bytes": memory.used if memory else None,
            "memory_bytes": memory.total if memory else None,
            "other_processes": None if processes is None else foreign_processes(one.pid for one in processes),
        }


@dataclass(frozen=True)
class Room:
    """What a GPU has left for a run.

    Args:
        others: processes that are not of this study; None where that cannot be told.
        free: bytes that nobody uses, and those that this study's own processes do; None where that cannot be told.
        memory: bytes that it has.
    """

    others: int | None
    free: int | None
    memory: int | None


def find_room(gpu: Gpu) -> Room:
    """Whether others use a GPU, and how much of its memory is left."""
    with nvml_held() as nvml:
        ask = _asker(nvml, None if nvml is None else _handle_of(nvml, gpu.uuid))
        memory, processes = ask("nvmlDeviceGetMemoryInfo"), ask("nvmlDeviceGetComputeRunningProcesses")
        own = 0
        if processes and sees_all_processes():
            head = head_of_family()
            own = sum(one.usedGpuMemory or 0 for one in processes if is_of_family(one.pid, head))
        return Room(
            None if processes is None else foreign_processes(one.pid for one in processes),
            None if memory is None else memory.total - memory.used + own,
            None if memory is None else memory.total,
        )


def count_ecc_errors(gpu: Gpu) -> int:
    """Errors of its memory that could not be corrected, since the driver was loaded; 0 where it does not count them."""
    with nvml_held() as nvml:
        if nvml is None:
            return 0
        ask = _asker(nvml, _handle_of(nvml, gpu.parent or gpu.uuid))
        kind, since = getattr(nvml, "NVML_MEMORY_ERROR_TYPE_UNCORRECTED", 1), getattr(nvml, "NVML_VOLATILE_ECC", 0)
        return int(ask("nvmlDeviceGetTotalEccErrors", kind, since) or 0)


def find_fault(gpu: Gpu, ecc_errors: int | None = None) -> str | None:
    """What is wrong with a GPU that was there before, in words; None where nothing is known to be.

    Args:
        ecc_errors: how many it had counted when it was last well; None does not ask.
    """
    with nvml_held() as nvml:
        if nvml is None:
            return None
        gone = {getattr(nvml, name) for name in GONE if hasattr(nvml, name)}
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(gpu.parent or gpu.uuid)
            nvml.nvmlDeviceGetMemoryInfo(handle)
        except nvml.NVMLError as error:
            value = getattr(error, "value", None)
            if value in gone:
                return "it has fallen off the bus"
            return "its driver says that it must be reset" if value == getattr(nvml, RESET, object()) else None
        counted = 0 if ecc_errors is None else count_ecc_errors(gpu) - ecc_errors
        return (
            f"its memory had {counted} error{'s' if counted > 1 else ''} that ECC could not correct"
            if counted > 0
            else None
        )


def _gpus_of(nvml: Any, number: int, handle: Any) -> list[Gpu]:
    """A GPU, or its parts where MIG has divided it."""
    ask = _asker(nvml, handle)
    uuid, name = _text(ask("nvmlDeviceGetUUID") or ""), ask("nvmlDeviceGetName")
    mode = ask("nvmlDeviceGetMigMode")
    if not mode or not mode[0]:
        return [Gpu(number, uuid, None if name is None else _text(name))]
    found = []
    for index in range(ask("nvmlDeviceGetMaxMigDeviceCount") or 0):
        part = ask("nvmlDeviceGetMigDeviceHandleByIndex", index)
        if part is None:  # places that hold no part
            continue
        about = _asker(nvml, part)
        instances = about("nvmlDeviceGetGpuInstanceId"), about("nvmlDeviceGetComputeInstanceId")
        name = about("nvmlDeviceGetName")
        own, places = _text(about("nvmlDeviceGetUUID") or ""), (instances[0] or 0, instances[1] or 0)
        found.append(Gpu(number, own, None if name is None else _text(name), places, uuid))
    return found


def _asker(nvml: Any, handle: Any) -> Callable[..., Any]:
    """Asks NVML about a device; None where it does not answer, as not every device answers every question."""

    def ask(question: str, *arguments: Any) -> Any:
        if nvml is None or handle is None or not hasattr(nvml, question):
            return None
        try:
            return getattr(nvml, question)(handle, *arguments)
        except nvml.NVMLError:
            return None

    return ask


def _handle(nvml: Any, index: int) -> Any:
    """None of a device that has failed; others keep their numbers."""
    try:
        return nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError:
        return None


def _handle_of(nvml: Any, uuid: str) -> Any:
    try:
        return nvml.nvmlDeviceGetHandleByUUID(uuid) if uuid else None
    except nvml.NVMLError:
        return None


def _slowed(ask: Callable[..., Any]) -> list[str] | None:
    """Why it runs slower than it could; NVML has renamed the question."""
    found = ask("nvmlDeviceGetCurrentClocksEventReasons")
    found = ask("nvmlDeviceGetCurrentClocksThrottleReasons") if found is None else found
    return None if found is None else sorted({reason for bit, reason in SLOWED.items() if found & bit})


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
