"""The section `execution` of a study: where its runs happen, and on how many devices. Nothing here changes what is trained."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from fairtune.settings.values import (
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_DEVICES,
    MOST_THREADS,
    MOST_WORKERS,
    Devices,
    Interval,
    Section,
    Whole,
    Workers,
)

MOST_EXTRA = 50
LONGEST_LIMIT = 366 * 24 * 60
"""Minutes that a job may ask for."""
_LIMIT = re.compile(r"(?:(\d{1,3})-)?(\d{1,4})(?::(\d{1,2}))?(?::(\d{1,2}))?")
_MEMORY = r"^[1-9][0-9]{0,8}[KMGT]?$"
_OWN_OPTIONS = (
    "array",
    "output",
    "error",
    "job-name",
    "requeue",
    "no-requeue",
    "signal",
    "open-mode",
    "parsable",
    "wrap",
)
"""Options of sbatch that fairtune gives itself, or that would undo what it does."""
_SHORT = {"a": "array", "o": "output", "e": "error", "J": "job-name"}


def _limit(value: Any) -> Any:
    """Slurm's forms of a time limit: minutes, hours:minutes:seconds, days-hours:minutes:seconds and what lies between."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LONGEST_LIMIT:
        return str(value)
    if isinstance(value, str) and _LIMIT.fullmatch(value.strip()) and 0 < limit_minutes(value) <= LONGEST_LIMIT:
        return value.strip()
    raise PydanticCustomError("limit", "not a time limit")


def limit_minutes(limit: str) -> float:
    """The minutes of a time limit as Slurm reads it."""
    found = _LIMIT.fullmatch(limit.strip())
    assert found is not None, "a limit was checked when it was read"
    days, first, second, third = (int(part or 0) for part in found.groups())
    if found[1] is not None or found[4] is not None:  # days-hours:minutes:seconds, or hours:minutes:seconds
        return days * 1440 + first * 60 + second + third / 60
    return first + second / 60  # minutes:seconds


def _extra(value: Any) -> Any:
    """Further options of sbatch: each one an option that fairtune does not give itself, without a line break."""
    if not isinstance(value, str) or not value.startswith("-") or len(value) > LONGEST_TEXT or not value.isprintable():
        raise PydanticCustomError("option", "not an option of sbatch")
    name = re.split(r"[= ]", value.lstrip("-"), maxsplit=1)[0]
    name = name if value.startswith("--") else _SHORT.get(value[1], name)
    if name in _OWN_OPTIONS:
        raise PydanticCustomError("option", "an option that fairtune gives itself")
    return value


TimeLimit = Annotated[
    str,
    PlainValidator(_limit),
    WithJsonSchema({"type": ["integer", "string"], "title": "minutes, or a time such as 4:00:00 or 1-12:00"}),
]
Option = Annotated[
    str,
    PlainValidator(_extra),
    WithJsonSchema(
        {"type": "string", "maxLength": LONGEST_TEXT, "title": "an option of sbatch, such as --account=lab"}
    ),
]
SlurmName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.,+-]+$", max_length=LONGEST_NAME, title="a name")]


class Slurm(Section):
    """What each job of a study asks Slurm for; what is absent is left to the cluster."""

    partition: SlurmName | None = Field(None, description="The partition, as `sinfo` lists them; several with commas.")
    time: TimeLimit | None = Field(
        None,
        description="The most that a job may take at a time. It saves before that and goes on in a new place in the queue, to the "
        "same bits.",
    )
    gres: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:,=+-]+$", max_length=LONGEST_TEXT, title="text")] | None = Field(
        None, description="Generic resources of each job, such as gpu:1 or gpu:a100:2."
    )
    cpus: Whole | None = Field(None, ge=1, le=MOST_THREADS, description="Cores of each job (--cpus-per-task).")
    memory: Annotated[str, Field(pattern=_MEMORY, title="a size such as 16G")] | None = Field(
        None, description="Memory of each job (--mem)."
    )
    max_parallel: Whole | None = Field(
        None,
        ge=1,
        le=MOST_WORKERS,
        description="Jobs of the study that may run at the same time; null is as many as fit.",
    )
    extra: tuple[Option, ...] = Field(
        (), max_length=MOST_EXTRA, description="Further options of sbatch, one per entry, such as --account=lab."
    )


class Ray(Section):
    """What each run asks a Ray cluster for."""

    address: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT, title="an address")] | None = Field(
        None,
        description="The cluster: auto, or host:port; null starts one on this machine, or takes what RAY_ADDRESS names.",
    )
    cpus: Whole = Field(1, ge=1, le=MOST_THREADS, description="Cores of each run.")
    gpus: Whole | None = Field(
        None,
        ge=0,
        le=MOST_DEVICES,
        description="GPUs of each run; null is 1 on a cluster that has GPUs.",
    )


def _section(value: Any) -> Any:
    return {} if value is None else value


class Execution(Section):
    """Where and how runs happen; nothing here changes what is trained, so nothing here is part of a run's signature."""

    on: Literal["local", "slurm", "ray"] = Field(
        "local",
        description="Who performs the runs: worker processes on this machine, a Slurm or a Ray cluster; `--on` says it too.",
    )
    devices: Devices = Field(
        ("auto",),
        description="Where runs happen; auto takes every GPU that CUDA_VISIBLE_DEVICES leaves, else the CPU.",
    )
    workers: Workers = Field(
        "auto",
        description="Runs side by side on each device. auto is one per GPU; on a CPU one per core, or per `threads` cores, and "
        "fewer where memory is short. Results do not depend on it.",
    )
    threads: Whole = Field(
        1,
        ge=1,
        le=MOST_THREADS,
        description="Threads of each worker on a CPU. More than 1 is for models so large that memory has no room for a run per "
        "core; it can change the last bits of a result.",
    )
    devices_per_run: Whole = Field(
        1,
        ge=1,
        le=MOST_DEVICES,
        description="Devices that share one run: each takes its part of every batch, the batch stays what it is. On a CPU, "
        "processes. It can change the last bits of a result.",
    )
    sharding: Literal["none", "full"] = Field(
        "none",
        description="With several devices per run. none: each holds the whole model; full: weights, gradients and optimizer state "
        "are divided among them, for models that do not fit on one.",
    )
    checkpoint_every: Interval = Field("5min", description="Save the state of a run after this time, or so many steps.")
    save_model: bool = Field(True, description="Keep each run's best model as a transformers folder.")
    slurm: Annotated[Slurm, BeforeValidator(_section)] = Field(
        Slurm(), description="What each job asks Slurm for, with `on: slurm`."
    )
    ray: Annotated[Ray, BeforeValidator(_section)] = Field(
        Ray(), description="What each run asks Ray for, with `on: ray`."
    )
