"""A Ray cluster: whether it can be used, one task per run, where each one is. Ray carries nothing but the places of files."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairtune.core.errors import FairtuneError
from fairtune.core.version import __version__
from fairtune.execution.executors.ray import node_look
from fairtune.execution.executors.ray.connection import connect
from fairtune.execution.executors.ray.node_task import STOP_SECONDS, perform_block
from fairtune.execution.executors.remote.cluster import CANCELLED, GONE, RUNNING, WAITING, BlockKey, BlockState
from fairtune.execution.executors.remote.job_files import Submission, read_answer
from fairtune.execution.executors.remote.node import DONE, LEFT
from fairtune.execution.executors.slots import CPU
from fairtune.execution.job import Job
from fairtune.settings.execution import Execution

LOOK_SECONDS = 120.0
"""How long a node may take to start a process and tell what it has."""
NAMED = 3
"""So many nodes are named in a message; of more, how many."""


class RayCluster:
    """Ray, for one study; see `Cluster`.

    Args:
        home: the study's folder.
    """

    name = "Ray"

    def __init__(self, execution: Execution, home: Path) -> None:
        self._execution, self._home = execution, home
        self._ray: Any = None
        self._tasks: dict[BlockKey, tuple[Submission, Any]] = {}
        self._cpus, self._gpus = execution.ray.cpus, 0

    def check(self, jobs: Sequence[Job]) -> None:  # noqa: ARG002
        self._ray = self._ray or connect(self._execution.ray.address)
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        self._cpus, self._gpus = self._needs(nodes)
        fitting = [node for node in nodes if _has(node, "CPU") >= self._cpus and _has(node, "GPU") >= self._gpus]
        if not fitting:
            raise FairtuneError(self._too_large(nodes))
        self._look_at(fitting)

    def _needs(self, nodes: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
        """Cores and GPUs of a run."""
        wanted, devices = self._execution.ray.gpus, self._execution.devices_per_run
        if wanted is None:
            on_gpu = self._execution.devices != (CPU,) and any(_has(node, "GPU") for node in nodes)
            wanted = devices if on_gpu else 0
        own = 1 if wanted else devices * self._execution.threads  # each process on a CPU has its own
        return max(self._execution.ray.cpus, own), wanted

    def _too_large(self, nodes: Sequence[Mapping[str, Any]]) -> str:
        largest = sorted({(_has(node, "GPU"), _has(node, "CPU")) for node in nodes}, reverse=True)[:NAMED]
        there = "; ".join(f"{_count(cpus, 'core')}, {_count(gpus, 'GPU')}" for gpus, cpus in largest)
        return (
            f"execution: a run needs {_count(self._cpus, 'core')} and {_count(self._gpus, 'GPU')} of one node, and no node of the "
            f"Ray cluster has as much (there is: {there or 'no node'}); set ray.cpus, ray.gpus or devices_per_run to less."
        )

    def _look_at(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Have every node say what it has, and read a file that only this process has just written."""
        from ray import cloudpickle
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        token, file = secrets.token_hex(8), self._home.resolve() / f".shared-{secrets.token_hex(4)}"
        cloudpickle.register_pickle_by_value(node_look)
        look = self._ray.remote(node_look.look_around)
        file.write_text(token, encoding="utf-8")
        try:
            asked = {
                look.options(
                    num_cpus=0, max_retries=0,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
                ).remote(str(file)): str(node["NodeManagerHostname"])
                for node in nodes
            }  # fmt: skip
            answered, silent = self._ray.wait(list(asked), num_returns=len(asked), timeout=LOOK_SECONDS)
            found = {ref: self._answer(ref) for ref in answered}
        finally:
            cloudpickle.unregister_pickle_by_value(node_look)
            file.unlink(missing_ok=True)
        mute = [asked[ref] for ref in (*silent, *(ref for ref, one in found.items() if one is None))]
        if mute:
            raise FairtuneError(
                f"execution.on: {_named(mute)} of the Ray cluster did not answer; look at `ray status`."
            )
        told = {ref: one for ref, one in found.items() if one is not None}
        _require_version({asked[ref]: one["fairtune"] for ref, one in told.items()})
        unseen = [asked[ref] for ref, one in told.items() if one["token"] != token]
        if unseen:
            raise FairtuneError(
                f"--runs: {_named(unseen)} of the Ray cluster cannot see '{self._home}'; the runs folder must be on a disk that "
                "all nodes share, under the same path."
            )

    def _answer(self, ref: Any) -> dict[str, Any] | None:
        try:
            return dict(json.loads(self._ray.get(ref)))
        except self._ray.exceptions.RayError:
            return None

    def group(self, jobs: Sequence[Job]) -> list[list[Job]]:
        return [[job] for job in jobs]

    def queue(self, submission: Submission, blocks: Sequence[int]) -> str:
        # A task that is lost is told and sent again by whoever follows it, after a look at the ledger; so not by Ray as well.
        task = self._ray.remote(perform_block).options(
            num_cpus=self._cpus, num_gpus=self._gpus, max_retries=0, name=f"fairtune {submission.home.name}"
        )
        for block in blocks:
            ref = task.remote(str(submission.folder.resolve()), block, self._gpus > 0)
            self._tasks[submission.folder.name, block] = submission, ref
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        there = [
            f"{_count(sum(_has(node, kind) for node in nodes), word)}"
            for kind, word in (("CPU", "core"), ("GPU", "GPU"))
        ]
        each = f"{_count(self._cpus, 'core')}" + (f" and {_count(self._gpus, 'GPU')}" if self._gpus else "")
        return f"{_count(len(blocks), 'run')} handed to Ray ({_count(len(nodes), 'node')}: {', '.join(there)}), {each} each."

    def queued(self) -> list[Path]:
        return []  # tasks end with the process that asked for them

    def states(self, blocks: Collection[BlockKey]) -> Mapping[BlockKey, BlockState]:
        asked = {key: self._tasks[key] for key in blocks if key in self._tasks}
        refs = [ref for _, ref in asked.values()]
        done = set(self._ray.wait(refs, num_returns=len(refs), timeout=0)[0]) if refs else set()
        return {
            key: self._ended(ref) if ref in done else _under_way(submission, key[1])
            for key, (submission, ref) in asked.items()
        }

    def _ended(self, ref: Any) -> BlockState:
        errors = self._ray.exceptions
        try:
            code = int(self._ray.get(ref))
        except errors.TaskCancelledError:
            return BlockState(CANCELLED)
        except (errors.NodeDiedError, errors.LocalRayletDiedError, errors.OwnerDiedError):
            return BlockState(GONE, "its node died")
        except errors.WorkerCrashedError:
            return BlockState(GONE, "its node, or Ray's process there, died")
        except errors.RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return BlockState(GONE, lines[-1] if lines else type(error).__name__)
        if code in (DONE, LEFT):
            return BlockState(GONE, "" if code == DONE else "it was stopped there")
        return BlockState(GONE, f"its process ended with code {code}")

    def cancel(self, blocks: Collection[BlockKey]) -> None:
        refs = [self._tasks[key][1] for key in blocks if key in self._tasks]
        for ref in refs:
            self._ray.cancel(ref)  # an interruption, which the task passes on
        if refs:
            _, left = self._ray.wait(refs, num_returns=len(refs), timeout=STOP_SECONDS)
            for ref in left:
                self._ray.cancel(ref, force=True)

    def ways(self) -> str:
        return ""  # they cannot be left there

    def close(self) -> None:
        if self._ray is not None:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.shutdown()


def _under_way(submission: Submission, block: int) -> BlockState:
    begun = any(read_answer(submission.folder, number) is not None for number in submission.blocks[block])
    return BlockState(RUNNING) if begun else BlockState(WAITING)


def _require_version(found: Mapping[str, str | None]) -> None:
    missing = [node for node, version in found.items() if version is None]
    if missing:
        raise FairtuneError(
            f"execution.on: fairtune is not installed on {_named(missing)} of the Ray cluster; `pip install 'fairtune[ray]=="
            f"{__version__}'` there, or start Ray from one environment on a shared disk."
        )
    others = {node: version for node, version in found.items() if version != __version__}
    if others:
        named = _named([f"{node} ({version})" for node, version in others.items()])
        raise FairtuneError(
            f"execution.on: another fairtune than that of this process, {__version__}, is on {named} of the Ray cluster; install "
            "the same version on every node, or use one environment on a shared disk."
        )


def _has(node: Mapping[str, Any], resource: str) -> int:
    return int(node["Resources"].get(resource, 0))


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number or 'no'} {word}s"


def _named(nodes: Sequence[str]) -> str:
    """node a; nodes a, b and 4 more."""
    names = list(dict.fromkeys(nodes))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"node{'s' if len(names) > 1 else ''} {', '.join(names[:NAMED])}{more}"
