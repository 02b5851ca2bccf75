"""Which executor performs a study, by `execution.on`; each is imported when it is chosen."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from fairtune.execution.executors.base import Executor, ExecutorFactory
from fairtune.settings.execution import Execution

FACTORIES = {
    "local": "fairtune.execution.executors.local:make_local_executor",
    "slurm": "fairtune.execution.executors.slurm:make_slurm_executor",
    "ray": "fairtune.execution.executors.ray:make_ray_executor",
}
"""By `execution.on`, the module and the function that makes the executor; see `ExecutorFactory`."""


def make_executor(execution: Execution, home: Path) -> Executor:
    """The executor that a study asks for."""
    module, _, name = FACTORIES[execution.on].partition(":")
    factory: ExecutorFactory = getattr(import_module(module), name)
    return factory(execution, home)
