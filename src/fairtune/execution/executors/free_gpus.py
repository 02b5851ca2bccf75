"""Waiting for a GPU on which nobody else works and that has room for the next run, instead of crowding it (`wait_for_free`)."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fairtune.core.gpus import Gpu, find_room
from fairtune.execution.executors.memory_estimate import estimate_memory
from fairtune.execution.executors.slots import CPU, Slot
from fairtune.execution.job import Job

LOOK_SECONDS = 2.0
"""Between two looks at GPUs that are waited for."""
MOST_SHARE = 0.8
"""Of a GPU's memory, that is waited for at most: what an estimate says beyond that nobody could free."""


class FreeGpus:
    """Says whether a place's GPUs are free for a job, and what is in the way where they are not.

    Args:
        wanted: whether the study waits for free GPUs; otherwise all count as free.
    """

    def __init__(self, wanted: bool) -> None:
        self._wanted, self._look_at = wanted, 0.0
        self._needed: dict[str, int] = {}

    def is_due(self) -> bool:
        """Whether it is time to look again."""
        return time.monotonic() >= self._look_at

    def look_at_once(self) -> None:
        """A place has become free, so that there is something to look at."""
        self._look_at = 0.0

    def look_later(self) -> None:
        self._look_at = time.monotonic() + LOOK_SECONDS

    def obstacle(self, slot: Slot, job: Job) -> str | None:
        """Why a job is not to begin in a place, in words; None where it may."""
        if not self._wanted:
            return None
        return next((text for gpu in slot.gpus if (text := self._obstacle(gpu, job)) is not None), None)

    def _obstacle(self, gpu: Gpu, job: Job) -> str | None:
        room = find_room(gpu)
        if room.others:
            return f"{gpu.title} is used by {room.others} other process{'es' if room.others > 1 else ''}"
        if room.free is None or room.memory is None:
            return None  # it does not tell
        if job.name not in self._needed:
            self._needed[job.name] = estimate_memory(job)
        lacking = min(self._needed[job.name], int(MOST_SHARE * room.memory)) - room.free
        return f"{gpu.title} lacks {lacking / 1e9:.1f} GB of free memory" if lacking > 0 else None


def waiting_notes(slots: Sequence[Slot]) -> list[str]:
    """What to say of a study that waits for free GPUs and has places without any that could be asked."""
    if any(slot.gpus for slot in slots):
        return []
    where = "on a CPU" if all(slot.device == CPU for slot in slots) else "where NVML does not tell of GPUs"
    return [f"execution.wait_for_free has no meaning {where}, so runs begin at once."]
