"""Ray as a cluster: one task per run. Ray carries nothing but the places of files."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fairtune.core.errors import FairtuneError
from fairtune.core.machine import available_cores
from fairtune.core.numbers import plural
from fairtune.execution.executors.node import ATTACHED
from fairtune.execution.executors.remote import (
    GONE,
    OVER,
    RUNNING,
    WAITING,
    BlockState,
    RemoteExecutor,
    exit_state,
)
from fairtune.execution.executors.slots import CPU
from fairtune.execution.executors.specs import Block
from fairtune.ledger.environment import NODE
from fairtune.settings.execution import Execution
from fairtune.study.run_spec import RunSpec

OWN = "local"
"""The address of a cluster that does not exist yet."""
CONNECT_SECONDS = 10.0
STOP_SECONDS = 300.0
"""How long a run may take to save its state when it is cancelled."""
STORE_BYTES = 80 << 20
"""Of the object store of a cluster of our own: nearly the least that Ray takes, since no result goes through it."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",  # and no log of a node that dies is printed among our own output
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # nor is the working folder sent to every node
}
PATIENCE = {"RAY_NUM_REDIS_GET_RETRIES": "2"}
"""How often Ray tries to reach a cluster, which takes most of a minute each time; by default, for a quarter of an hour."""
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Set to 0, has every process of a new cluster listen on the loopback alone, on Linux too."""
MISSING = (
    "execution.on: ray needs the package `ray`, which is not installed; `pip install 'fairtune[ray]'` installs it."
)


def make_ray_executor(execution: Execution, home: Path) -> RemoteExecutor:
    return RemoteExecutor(RayCluster(execution), execution, home)


class RayCluster:
    """Ray, for one study; see `Cluster`."""

    name = "Ray"

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._ray: Any = None
        self._tasks: dict[Block, Any] = {}

    def group(self, jobs: Sequence[RunSpec]) -> list[list[RunSpec]]:
        return [[job] for job in jobs]

    def queue(self, blocks: Sequence[Block]) -> str:
        self._ray = self._ray or connect(self._execution.ray.address)
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        cpus, gpus = self._needs(nodes)
        if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in nodes):
            raise FairtuneError(
                f"execution: a run needs {cpus} cores and {gpus} GPUs of one node, and no node of the Ray cluster has that many; "
                "set ray.cpus or ray.gpus to less."
            )
        # A task that is lost is noticed and sent again by the executor, after a look at the ledger; so not by Ray as well.
        task = self._ray.remote(make_task()).options(num_cpus=cpus, num_gpus=gpus, max_retries=0)
        for block in blocks:
            self._tasks[block] = task.remote([str(spec) for spec in block.specs], str(block.log), gpus > 0)
        there = [f"{int(sum(node.get(kind, 0) for node in nodes))} {kind}s" for kind in ("CPU", "GPU")]
        return f"{plural(len(blocks), 'run')} handed to Ray ({len(nodes)} nodes with {' and '.join(there)})."

    def _needs(self, nodes: Sequence[Mapping[str, float]]) -> tuple[int, int]:
        """Cores and GPUs of a run."""
        gpus = self._execution.ray.gpus
        if gpus is None:
            gpus = int(self._execution.devices != (CPU,) and any(node.get("GPU") for node in nodes))
        return max(self._execution.ray.cpus, 1 if gpus else self._execution.threads), gpus

    def left(self) -> list[Block]:
        return []  # tasks end with the process that asked for them

    def states(self, blocks: Collection[Block]) -> Mapping[Block, BlockState]:
        refs = [self._tasks[block] for block in blocks]
        ended = set(self._ray.wait(refs, num_returns=len(refs), timeout=0)[0])
        return {block: self._state(block, self._tasks[block] in ended) for block in blocks}

    def _state(self, block: Block, ended: bool) -> BlockState:
        if not ended:
            return BlockState(RUNNING if block.log.exists() else WAITING)
        errors = self._ray.exceptions
        try:
            return exit_state(self._ray.get(self._tasks[block]), block)
        except errors.TaskCancelledError:
            return BlockState(OVER, "its task was cancelled; run the same command again to go on with it")
        except (errors.NodeDiedError, errors.LocalRayletDiedError, errors.OwnerDiedError, errors.WorkerCrashedError):
            return BlockState(GONE, "its node, or Ray's process there, died")
        except errors.RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return BlockState(GONE, lines[-1] if lines else type(error).__name__)

    def cancel(self, blocks: Collection[Block]) -> None:
        refs = [self._tasks[block] for block in blocks]
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


def make_task() -> Callable[[list[str], str, bool], int]:
    """What Ray performs on a node. A function within another is sent there whole, so that it needs nothing of fairtune's."""
    node_variable, attached, seconds = NODE, ATTACHED, STOP_SECONDS

    def perform(specs: list[str], log: str, on_gpu: bool) -> int:
        """Run `fairtune worker`, which ends with this process, saving its state. Returns its exit code."""
        import os
        import subprocess
        import sys
        import time

        import ray

        # Ray sets OMP_NUM_THREADS for all its tasks
        environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        environment[node_variable] = f"ray-{ray.get_runtime_context().get_node_id()[:12]}"
        if not on_gpu:
            environment["CUDA_VISIBLE_DEVICES"] = ""
        order = [sys.executable, "-m", "fairtune", "worker", attached, *specs]
        try:
            output = open(log, "ab")  # noqa: PTH123, SIM115
        except OSError:
            return 41  # as `fairtune worker` says that it cannot see its files
        process = subprocess.Popen(
            order, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment, start_new_session=True
        )
        try:
            while (
                code := process.poll()
            ) is None:  # a wait for ever would not be interrupted when the task is cancelled
                time.sleep(0.5)
            return code
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(seconds)
                except subprocess.TimeoutExpired:
                    process.kill()

    return perform


def connect(address: str | None) -> Any:
    """Ray, connected.

    Args:
        address: `auto`, `host:port`, or None for what RAY_ADDRESS names, else a cluster of our own.

    Raises:
        FairtuneError: Ray is not installed, or no cluster can be used there.
    """
    wanted = address or os.environ.get("RAY_ADDRESS") or OWN
    if find_spec("ray") is None:
        raise FairtuneError(MISSING)
    if "://" in wanted:
        raise FairtuneError(
            f"execution.ray.address: found '{wanted}', the address of a Ray client; allowed: auto, or host:port of the cluster's "
            "head. Type the command on a node of the cluster, which sees the runs folder."
        )
    if ":" in wanted:
        _require_answer(wanted)
    here = {LOOPBACK: "0"} if wanted == OWN or _is_here_alone(wanted) else {}
    for name, value in {**QUIET, **here, **({} if wanted == OWN else PATIENCE)}.items():
        os.environ.setdefault(name, value)
    import ray  # reads the environment

    logging.getLogger("ray").setLevel(logging.ERROR)
    own: dict[str, Any] = {"num_cpus": available_cores(), "object_store_memory": STORE_BYTES} if wanted == OWN else {}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            wanted, include_dashboard=False if wanted == OWN else None, log_to_driver=False, configure_logging=False, **own,
        )  # fmt: skip
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        raise FairtuneError(_unreachable(wanted, str(error))) from None
    finally:
        signal.signal(signal.SIGTERM, handler)  # Ray's own would not let runs save
    return ray


def _require_answer(address: str) -> None:
    """Something listens there; else Ray would try for ever."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise FairtuneError(_unreachable(address, getattr(error, "strerror", None) or str(error))) from None


def _is_here_alone(address: str) -> bool:
    """Whether a cluster listens on the loopback and nowhere else, where Ray does not look by default."""
    host, _, port = address.rpartition(":")
    if host not in ("127.0.0.1", "localhost"):
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outward:
        try:
            outward.connect(("192.0.2.1", 1))  # sends nothing; chooses the address that others would see
            socket.create_connection((outward.getsockname()[0], int(port)), 1.0).close()
        except OSError:
            return True
    return False


def _unreachable(address: str, why: str) -> str:
    reason = next((line.strip().rstrip(".") for line in why.splitlines() if line.strip()), "it does not say why")
    if address == OWN:
        return f"execution.on: Ray cannot be started on this machine: {reason}."
    return (
        f"execution.ray.address: no Ray cluster can be used at '{address}': {reason}. Start one with `ray start --head`, give "
        "its address, or none to have one started on this machine."
    )
