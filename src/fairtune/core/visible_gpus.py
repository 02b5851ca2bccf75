"""The GPUs that a process may use, as CUDA reads CUDA_VISIBLE_DEVICES: numbers, uuids of GPUs, or uuids of parts that MIG made.

As in CUDA, the first entry that names nothing ends the list, a list that names one GPU twice shows none, and so do the empty list
and -1. Numbers are in the order of the PCI bus, whatever CUDA_DEVICE_ORDER is here: workers are told to count so too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from fairtune.core.gpus import Gpu, find_gpus

VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
BY_BUS = "PCI_BUS_ID"
GPU, MIG = "GPU-", "MIG-"
_NUMBER = re.compile(r"\s*\+?(\d+)")
"""Where a number begins: CUDA takes what follows it for nothing."""
_OLD_PART = re.compile(r"MIG-(GPU-[^/]+)/(\d+)/(\d+)")


def visible_gpus(environment: Mapping[str, str] | None = None) -> list[Gpu] | None:
    """The GPUs that a process with this environment sees, in the order in which it counts them; None where NVML cannot be asked."""
    found = find_gpus()
    if found is None:
        return None
    listed = (os.environ if environment is None else environment).get(VISIBLE)
    return [gpu for gpu in found if gpu.uuid] if listed is None else read_visible(listed, found)


def read_visible(listed: str, there: Sequence[Gpu]) -> list[Gpu]:
    """The GPUs that a value of CUDA_VISIBLE_DEVICES names.

    Args:
        there: every GPU, in the order of the PCI bus.
    """
    kind = next((kind for kind in (GPU, MIG) if listed.startswith(kind)), "")
    found: list[Gpu] = []
    for entry in listed.split(","):
        gpu = _named(entry.strip(), kind, there)
        if gpu is None:
            break
        if not gpu.uuid:  # it has failed: others are none the worse for it
            continue
        if gpu in found:
            return []
        found.append(gpu)
    return found


def cuda_names(gpus: Sequence[Gpu]) -> str:
    """The value of CUDA_VISIBLE_DEVICES that shows these GPUs alone: by uuid once one has failed, as CUDA may not count it then."""
    failed = any(not gpu.uuid for gpu in find_gpus() or ())
    return ",".join(gpu.uuid if failed else gpu.cuda_name for gpu in gpus)


def _named(entry: str, kind: str, there: Sequence[Gpu]) -> Gpu | None:
    """The GPU that an entry names; of a GPU in parts its first, as CUDA takes it."""
    if kind and not entry.startswith(kind):  # the first entry says in which way all are named
        return None
    if kind == GPU:
        whole = {gpu.parent or gpu.uuid: gpu for gpu in reversed(there) if (gpu.parent or gpu.uuid).startswith(entry)}
        return next(iter(whole.values())) if len(whole) == 1 else None
    if kind == MIG:
        parts = [gpu for gpu in there if gpu.part and (gpu.uuid.startswith(entry) or _is_old_name(entry, gpu))]
        return parts[0] if len(parts) == 1 else None
    number = _NUMBER.match(entry)
    return None if number is None else next((gpu for gpu in there if gpu.number == int(number[1])), None)


def _is_old_name(entry: str, gpu: Gpu) -> bool:
    """Whether an entry is `MIG-GPU-uuid/gi/ci`, as drivers before 470 named parts."""
    found = _OLD_PART.fullmatch(entry)
    return found is not None and gpu.parent == found[1] and gpu.part == (int(found[2]), int(found[3]))
