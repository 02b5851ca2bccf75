"""The section `execution` of a study: where its runs happen. Nothing here changes what is trained."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from fairtune.settings.values import Count, Devices, Interval, Section, Threads, Whole, Workers, form, refuse

_OWN_OPTIONS = (
    *("array", "output", "error", "job-name", "-a", "-o", "-e", "-J"),
    *("requeue", "no-requeue", "signal", "open-mode", "parsable", "wrap"),
)
"""Options of sbatch that fairtune gives itself, or that would undo what it does."""


def limit_minutes(limit: str) -> float:
    """The minutes of a time limit as Slurm reads it: minutes, hours:minutes:seconds, days-hours:minutes:seconds and the like."""
    days, _, rest = limit.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    units = (60, 1, 1 / 60) if days or len(parts) == 3 else (1, 1 / 60)
    return int(days or 0) * 1440 + sum(part * unit for part, unit in zip(parts, units, strict=False))


def _option(value: str) -> str:
    name = re.split(r"[= ]", value.lstrip("-"), maxsplit=1)[0] if value.startswith("--") else value[:2]
    return value if value.isprintable() and name not in _OWN_OPTIONS else refuse()


_LIMIT = r"^([0-9]{1,6}(:[0-9]{1,2}){0,2}|[0-9]{1,3}-[0-9]{1,2}(:[0-9]{1,2}){0,2})$"
TimeLimit = Annotated[
    str,
    Field(pattern=_LIMIT),
    BeforeValidator(lambda given: str(given) if type(given) is int else given, int | str),
    Field(title="a number of minutes, or a time such as 4:00:00 or 1-12:00"),
]
Option = Annotated[
    str,
    form(r"-.{1,999}", "an option of sbatch that fairtune does not give itself, such as --account=lab"),
    AfterValidator(_option),
]
SlurmText = Annotated[str, form(r"[\x21-\x7e]{1,100}", "a text without spaces")]


class Slurm(Section):
    """What each job of a study asks Slurm for; what is absent is left to the cluster."""

    partition: SlurmText | None = None
    """The partition, as `sinfo` lists them; several with commas."""
    time: TimeLimit | None = None
    """The most that a job may take at a time. It saves before that and goes on in a new place in the queue, to the same bits."""
    gres: SlurmText | None = None
    """Generic resources of each job, such as gpu:1 or gpu:a100:2."""
    cpus: Count | None = None
    """Cores of each job (--cpus-per-task)."""
    memory: SlurmText | None = None
    """Memory of each job (--mem), such as 16G."""
    max_parallel: Count | None = None
    """Jobs of the study that may run at the same time; null is as many as fit."""
    extra: tuple[Option, ...] = ()
    """Further options of sbatch, one per entry, such as --account=lab."""


class Ray(Section):
    """What each run asks a Ray cluster for."""

    address: Annotated[str, Field(min_length=1, title="an address")] | None = None
    """The cluster: auto, or host:port; null starts one on this machine, or takes what RAY_ADDRESS names."""
    cpus: Count = 1
    """Cores of each run."""
    gpus: Whole | None = Field(None, ge=0)
    """GPUs of each run; null is one on a cluster that has GPUs."""


def _section(value: Any) -> Any:
    return {} if value is None else value


class Execution(Section):
    """Where and how runs happen; nothing here changes what is trained, so nothing here is part of a run's signature."""

    on: Literal["local", "slurm", "ray"] = "local"
    """Who performs the runs: worker processes on this machine, a Slurm or a Ray cluster; `--on` says it too."""
    devices: Devices = ("auto",)
    """Where runs happen; auto takes every GPU that CUDA_VISIBLE_DEVICES leaves, else the CPU."""
    workers: Workers = "auto"
    """Runs side by side on each device. auto is one per GPU; on a CPU one per core, or per `threads` cores, and fewer where memory
    is short. Results do not depend on it."""
    threads: Threads = 1
    """Threads of each worker on a CPU. More than 1 is for models so large that memory has no room for a run per core; it can change
    the last bits of a result."""
    checkpoint_every: Interval = "5min"
    """Save the state of a run after this time, or so many steps."""
    save_model: bool = True
    """Keep each run's best model as a transformers folder."""
    slurm: Annotated[Slurm, BeforeValidator(_section, Slurm | None)] = Slurm()
    """What each job asks Slurm for, with `on: slurm`."""
    ray: Annotated[Ray, BeforeValidator(_section, Ray | None)] = Ray()
    """What each run asks Ray for, with `on: ray`."""
