"""The executor of a study on Ray."""

from __future__ import annotations

from pathlib import Path

from fairtune.execution.executors.ray.cluster import RayCluster
from fairtune.execution.executors.remote.executor import RemoteExecutor
from fairtune.settings.execution import Execution


def make_ray_executor(execution: Execution, home: Path) -> RemoteExecutor:
    return RemoteExecutor(RayCluster(execution, home), execution, home)
