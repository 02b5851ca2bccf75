"""GPUs that failed while a study used them: no further run is given to them."""

from __future__ import annotations

import time
from contextlib import nullcontext

from fairtune.core.errors import DeviceError
from fairtune.core.gpus import Gpu, count_ecc_errors, find_fault, nvml_held
from fairtune.execution.executors.slots import Slot

LOOK_SECONDS = 30.0
"""Between two looks at the GPUs of workers that say nothing."""


class LostDevices:
    """Knows which places' GPUs have failed, by what workers say and by NVML."""

    def __init__(self) -> None:
        self._lost: dict[str, str] = {}  # by the first device of a place, which no place of other GPUs has
        self._titles: dict[str, str] = {}
        self._ecc: dict[Gpu, int] = {}
        self._gone: set[str] = set()
        self._look_at = 0.0

    def watch(self, slot: Slot) -> None:
        """A worker is started: remember how its GPUs were."""
        with nvml_held() if slot.gpus else nullcontext():
            for gpu in slot.gpus:
                self._ecc.setdefault(gpu, count_ecc_errors(gpu))

    def is_due(self) -> bool:
        """Whether it is time to look whether GPUs are still there."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + LOOK_SECONDS
        return True

    def is_gone(self, slot: Slot) -> bool:
        """Whether a place's GPU was gone at the last look and still is; its worker had that long to notice."""
        with nvml_held():
            gone = any(find_fault(gpu) is not None for gpu in slot.gpus)
        before = slot.name in self._gone
        (self._gone.add if gone else self._gone.discard)(slot.name)
        return gone and before

    def find_fault(self, slot: Slot) -> str | None:
        """Why a worker's GPU has failed, in words, as NVML has it; None where it is well."""
        with nvml_held():
            found = (find_fault(gpu, self._ecc.get(gpu)) for gpu in slot.gpus)
            return next((fault for fault in found if fault is not None), None)

    def add(self, slot: Slot, reason: str) -> str:
        """A worker's GPU has failed. Returns what to call it."""
        with nvml_held():
            failed = [gpu for gpu in slot.gpus if find_fault(gpu, self._ecc.get(gpu)) is not None] or list(slot.gpus)
        named = " or ".join(gpu.title for gpu in failed)
        self._titles[slot.device] = f"{named} ({failed[0].name})" if failed and failed[0].name else named or slot.device
        self._lost.setdefault(slot.device, reason)
        return self._titles[slot.device]

    def has(self, slot: Slot) -> bool:
        return slot.device in self._lost

    def require_some_left(self, waiting: int) -> None:
        """Nothing can be done any more; where runs wait, say why.

        Raises:
            DeviceError: every GPU has failed.
        """
        if not waiting or not self._lost:
            return
        each = "; ".join(f"{self._titles[device]}: {reason}" for device, reason in sorted(self._lost.items()))
        runs = "1 run is" if waiting == 1 else f"{waiting} runs are"
        raise DeviceError(
            f"every GPU that this study could use has failed ({each}). {runs} left where training stopped; once a GPU works "
            "again, the same command goes on from there."
        )
