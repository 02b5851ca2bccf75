"""Which arms are timed together: all of them, or as many at a time as memory holds, each beside those it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fairtune.core.machine import available_memory, describe_gpu
from fairtune.execution.executors.memory_estimate import estimate_memory
from fairtune.execution.executors.slots import device_gpu, find_devices
from fairtune.execution.stopwatch.session import make_jobs
from fairtune.study.plan import Plan

SHARE = 0.8
"""Of the memory that is free, what a session may take."""


def group_arms(plan: Plan, arms: Sequence[str], room: int | None = None) -> list[list[str]]:
    """The arms in as few groups as fit into memory, the reference in each.

    Args:
        room: bytes that are free; None asks the machine.
    """
    job = make_jobs(plan, arms, Path())[plan.study.compare.to]
    free = _free(find_devices(plan.study.execution.devices)[0]) if room is None else room
    most = int(SHARE * free // estimate_memory(job)) - 1  # besides the second copy of the reference
    if most >= len(arms):
        return [list(arms)]
    return _grouped(arms, plan.primaries, plan.study.compare.to, most)


def _grouped(arms: Sequence[str], partners: Mapping[str, str | None], reference: str, most: int) -> list[list[str]]:
    groups: list[set[str]] = []
    for arm in arms:
        if arm == reference:
            continue
        own = {reference, arm, partners.get(arm) or reference}
        room = next((group for group in groups if len(group | own) <= most), None)
        if room is None:
            groups.append(own)
        else:
            room |= own
    covered = [group for group in groups if not any(group < other for other in groups)]
    return [[arm for arm in arms if arm in group] for group in covered] or [[reference]]


def _free(device: str) -> int:
    """Bytes that are free where the arms will be."""
    gpu = device_gpu(device)
    found = {} if gpu is None else describe_gpu(gpu)
    if found.get("memory_bytes"):
        return int(found["memory_bytes"] - (found["memory_used_bytes"] or 0))
    return available_memory()
