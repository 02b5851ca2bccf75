"""What the cluster's partitions offer, against what each job asks for: refused in a sentence before anything is queued."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairtune.core.errors import nearest, one_of
from fairtune.execution.executors.slurm.commands import NodeFacts, SlurmError
from fairtune.execution.executors.slurm.script import cores_of
from fairtune.settings.execution import Execution, limit_minutes

UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
"""Megabytes, as Slurm counts memory."""


def require_resources(execution: Execution, nodes: Sequence[NodeFacts]) -> None:
    """Refuse what no node of the partition can give.

    Raises:
        SlurmError: the partition is unknown, or has no such node; in one sentence.
    """
    wanted = execution.slurm
    usable = _nodes_of(wanted.partition, nodes)
    where = f"partition {wanted.partition}" if wanted.partition else "the default partition"
    if wanted.time is not None:
        limits = [_minutes(node.limit) for node in usable]
        if limits and limit_minutes(wanted.time) > max(limits):
            longest = max(usable, key=lambda node: _minutes(node.limit)).limit
            raise SlurmError(
                f"execution.slurm.time is {wanted.time}, but {where} lets a job take {longest} at most; give that, and longer "
                "runs save and go on in a new place in the queue."
            )
    _require_cores(execution, usable, where)
    if wanted.memory is not None and _megabytes(wanted.memory) > (most := max(node.memory for node in usable)):
        raise SlurmError(f"execution.slurm.memory is {wanted.memory}, but no node of {where} has more than {most}M.")
    if wanted.gres is not None:
        _require_gres(execution, wanted.gres, usable, where)


def _nodes_of(wanted: str | None, nodes: Sequence[NodeFacts]) -> list[NodeFacts]:
    names = sorted({node.partition for node in nodes})
    for name in (wanted or "").split(","):
        if name and name not in names:
            raise SlurmError(
                f"execution.slurm.partition: Slurm has no partition '{name}'; there are {one_of(names)}.{nearest(name, names)}"
            )
    chosen = wanted.split(",") if wanted else [node.partition for node in nodes if node.is_default]
    if not chosen:
        raise SlurmError(f"Slurm has no default partition; set execution.slurm.partition to one of {one_of(names)}.")
    return [node for node in nodes if node.partition in chosen]


def _require_cores(execution: Execution, nodes: Sequence[NodeFacts], where: str) -> None:
    most, cores = max(node.cores for node in nodes), cores_of(execution) or 1
    if cores <= most:
        return
    if execution.slurm.cpus is not None:
        what = f"execution.slurm.cpus is {cores}"
    elif execution.devices_per_run > 1 and execution.slurm.gres is None:
        what = f"execution.devices_per_run is {execution.devices_per_run}, which takes {cores} cores"
    else:
        what = f"execution.threads is {execution.threads}"
    raise SlurmError(f"{what}, but no node of {where} has more than {most} cores.")


def _require_gres(execution: Execution, wanted: str, nodes: Sequence[NodeFacts], where: str) -> None:
    gpus = 0
    for part in wanted.split(","):
        name, kind, count = _resource(part)
        most = max(_count(node.gres, name, kind) for node in nodes)
        if count > most:
            offered = one_of(dict.fromkeys(_plain(node.gres) for node in nodes if node.gres)) or "none"
            raise SlurmError(
                f"execution.slurm.gres is {wanted}, but no node of {where} has that; generic resources there: {offered}."
            )
        gpus += count if name == "gpu" else 0
    if gpus and execution.devices_per_run > gpus:
        raise SlurmError(
            f"execution.devices_per_run is {execution.devices_per_run}, but each job asks for {gpus} GPU{'s' * (gpus > 1)} "
            f"(execution.slurm.gres: {wanted}); ask for as many, or lower it."
        )


def _resource(text: str) -> tuple[str, str, int]:
    """`gpu:a100:2` as name, type and count; the type may be empty."""
    parts = re.split(r"[:=]", text)
    count = int(parts.pop()) if len(parts) > 1 and parts[-1].isdecimal() else 1
    return parts[0], parts[1] if len(parts) > 1 else "", count


def _count(offered: str, name: str, kind: str) -> int:
    found = [_resource(part) for part in _plain(offered).split(",") if part]
    return sum(count for own, its, count in found if own == name and kind in ("", its))


def _plain(gres: str) -> str:
    """Without the sockets that Slurm adds in parentheses."""
    return re.sub(r"\([^)]*\)", "", gres)


def _minutes(limit: str) -> float:
    return limit_minutes(limit) if re.fullmatch(r"[0-9:-]+", limit) else float("inf")


def _megabytes(size: str) -> float:
    return float(size[:-1]) * UNITS[size[-1]] if size[-1] in UNITS else float(size)
