"""Places for workers: how many fit on each device, and what each is given of it.

Threads of one process wait for each other by spinning, so that a core which somebody else takes stops them all; and a study has
many runs that need nothing of each other. So a CPU gets a worker of one thread for each core.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from fairtune.core.errors import DeviceError
from fairtune.core.gpus import Gpu, nvml_held
from fairtune.core.machine import available_cores, available_memory
from fairtune.core.process_family import HEAD
from fairtune.core.threads import thread_environment
from fairtune.core.visible_gpus import BY_BUS, ORDER, VISIBLE, cuda_names, visible_gpus
from fairtune.execution.executors.memory_estimate import estimate_memory
from fairtune.execution.job import Job
from fairtune.settings.execution import Execution
from fairtune.settings.values import AUTO

CPU, CUDA = "cpu", "cuda:"


@dataclass(frozen=True)
class Slot:
    """A place for a worker.

    Args:
        device: its first, such as `cpu` or `cuda:1`, the second GPU that this process sees.
        name: of the worker, for its log.
        threads: of its own, or of each of its processes; None leaves that to torch.
        gpus: those that it sees, in this order; none where it has none, or where nobody can be asked for them.
        devices: that share its runs; on a CPU, processes.
    """

    device: str
    name: str
    threads: int | None
    gpus: tuple[Gpu, ...] = ()
    devices: int = 1


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
                raise DeviceError(
                    f"execution.devices names {device}, but {_visible_text(there)}. Name one of those, or make others "
                    f"visible with {VISIBLE}."
                )
    return list(dict.fromkeys(found))


def device_gpus(device: str) -> tuple[Gpu, ...]:
    """The GPU that a device such as `cuda:1` is; none of other devices, and where nobody can be asked."""
    there = (visible_gpus() or []) if device.startswith(CUDA) else []
    return (there[_index(device)],) if there and _index(device) < len(there) else ()


def find_slots(execution: Execution, jobs: Sequence[Job]) -> list[Slot]:
    """Where these jobs can be performed, every device used before one is used twice.

    Raises:
        DeviceError: a device that is named is not there, or a run asks for more than there are.
    """
    with nvml_held():
        groups = _group(execution)[0]
        gpus = {group: tuple(gpu for device in group for gpu in device_gpus(device)) for group in groups}
    counts = {group: _workers(group[0], execution, jobs) for group in groups}
    return [
        Slot(
            group[0],
            _name(group) + (f"-{number + 1}" if counts[group] > 1 else ""),
            execution.threads if group[0] == CPU else None,
            gpus[group],
            execution.devices_per_run,
        )
        for number in range(max(counts.values()))
        for group in groups
        if number < counts[group]
    ]


def group_devices(devices: Sequence[str], size: int) -> tuple[list[tuple[str, ...]], list[str]]:
    """Devices in groups that share a run, each of one kind, and those that are left over; a CPU is a group of any size.

    Raises:
        DeviceError: there is not one group.
    """
    if size == 1:
        return [(device,) for device in devices], []
    kinds: dict[str | None, list[str]] = {}
    groups: list[tuple[str, ...]] = []
    for device in devices:
        if device == CPU:
            groups.append((device,))
            continue
        gpu = next(iter(device_gpus(device)), None)
        kinds.setdefault(gpu.name if gpu else device.partition(":")[0], []).append(device)
        if gpu is not None and gpu.part:
            raise DeviceError(
                f"execution.devices_per_run is {size}, but {device} is a part that MIG made of a GPU, and a run cannot have "
                "several of those. Set it to 1, or take whole GPUs."
            )
    left = []
    for same in kinds.values():
        whole = len(same) // size * size
        groups += [tuple(same[start : start + size]) for start in range(0, whole, size)]
        left += same[whole:]
    if not groups:
        raise DeviceError(f"execution.devices_per_run is {size}, but {_too_few(devices, kinds)}")
    return sorted(groups, key=lambda group: devices.index(group[0])), left


def require_devices(execution: Execution) -> None:
    """Find what is amiss with the devices before anything is started.

    Raises:
        DeviceError: a device that is named is not there, or a run asks for more than there are.
    """
    _group(execution)


def leftover_notes(execution: Execution) -> list[str]:
    """What to say of devices that no run can have."""
    left = _group(execution)[1]
    if not left:
        return []
    verb = "is" if len(left) == 1 else "are"
    return [f"{' and '.join(left)} {verb} not used: execution.devices_per_run is {execution.devices_per_run}."]


def _group(execution: Execution) -> tuple[list[tuple[str, ...]], list[str]]:
    with nvml_held():
        return group_devices(find_devices(execution.devices), execution.devices_per_run)


def _too_few(devices: Sequence[str], kinds: dict[str | None, list[str]]) -> str:
    gpus = [device for device in devices if device.startswith(CUDA)]
    if len(kinds) > 1:
        each = ", ".join(f"{len(same)} x {kind}" for kind, same in kinds.items())
        return f"this machine's {len(gpus)} GPUs are of several kinds ({each}). Set it to what one kind has, or less."
    if not gpus:
        return f"this machine has one device of the kind {devices[0]}. Set it to 1."
    there = visible_gpus()
    named = f"execution.devices names {len(gpus)} GPU{'s' if len(gpus) > 1 else ''}"
    text = named if there is None or len(gpus) < len(there) else _visible_text(there)
    return f"{text}. Set it to {len(gpus)} or less, or give the study more GPUs."


def _visible_text(there: Sequence[Gpu]) -> str:
    """How many GPUs there are, and why not more."""
    listed = os.environ.get(VISIBLE)
    limited = "" if listed is None else f" ({VISIBLE} is {listed!r})"
    if not there:
        return f"this machine has no visible GPU{limited}"
    names = "cuda:0" if len(there) == 1 else f"cuda:0 to cuda:{len(there) - 1}"
    return f"this machine has {len(there)} visible GPU{'s' if len(there) > 1 else ''}, {names}{limited}"


def _index(device: str) -> int:
    return int(device.removeprefix(CUDA))


def _name(group: Sequence[str]) -> str:
    """Of a worker, after its devices: `cuda-0`, or `cuda-0_1` of two."""
    return "_".join([group[0].replace(":", "-"), *(device.partition(":")[2] for device in group[1:])])


def _workers(device: str, execution: Execution, jobs: Sequence[Job]) -> int:
    if execution.workers != AUTO:
        return int(execution.workers)
    if device != CPU:
        return 1
    processes = execution.devices_per_run
    cores = max(1, available_cores() // (execution.threads * processes))
    return max(1, min(cores, len(jobs), _fitting(jobs) // processes)) if min(cores, len(jobs)) > 1 else 1


def _fitting(jobs: Sequence[Job]) -> int:
    """How many runs fit into memory side by side, if all are like the largest of them."""
    different = {(job.spec.model.identity, str(job.plan["settings"]["train"])): job for job in jobs}
    return available_memory() // max(estimate_memory(job) for job in different.values())


def worker_environment(device: str, threads: int | None = 1, gpus: Sequence[Gpu] | None = None) -> dict[str, str]:
    """A worker's environment: its devices alone, repeatable CUDA arithmetic, and memory that is reused rather than returned.

    Args:
        threads: on a CPU; None leaves that to torch.
        gpus: that it sees; None is the device's own.
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
    environment[HEAD] = str(os.getpid())
    environment[ORDER] = BY_BUS  # as NVML counts
    if device == CPU and threads is not None:
        environment.update(thread_environment(threads))
    if device.startswith(CUDA):
        own = device_gpus(device) if gpus is None else gpus
        environment[VISIBLE] = cuda_names(own) if own else _listed(_index(device))
    return environment


def _listed(index: int) -> str:
    """What CUDA_VISIBLE_DEVICES calls a device, where nobody can be asked for it."""
    listed = [part for part in os.environ.get(VISIBLE, "").split(",") if part]
    return listed[index] if index < len(listed) else str(index)
