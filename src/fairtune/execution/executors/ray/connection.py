"""The way to a Ray cluster: one that is there, or one of our own on this machine, which nobody else can reach."""

from __future__ import annotations

import logging
import os
import signal
import socket
from importlib.util import find_spec
from typing import Any

from fairtune.core.errors import FairtuneError
from fairtune.core.machine import available_cores

OWN = "local"
"""The address of a cluster that does not exist yet."""
CONNECT_SECONDS = 10.0
STORE_BYTES = 80 << 20
"""Of the object store of a cluster of our own: nearly the least that Ray takes, since no result goes through it."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",  # and of a node that dies no log is printed where our own output goes
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # nor is the folder that a command was typed in, to every node
}
PATIENCE = {"RAY_NUM_REDIS_GET_RETRIES": "2"}
"""How often Ray tries to reach a cluster, which takes most of a minute each time; of itself it does so for a quarter of an hour."""
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Set to 0, has every process of a new cluster listen on the loopback alone, on Linux too."""
MISSING = "execution.on: ray needs the package `ray`, which is not installed; `pip install 'fairtune[ray]'` does it."


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
        signal.signal(signal.SIGTERM, handler)  # of Ray's own, which would not let runs save
    return ray


def _require_answer(address: str) -> None:
    """Somebody listens there; else Ray would try for ever."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise FairtuneError(_unreachable(address, getattr(error, "strerror", None) or str(error))) from None


def _is_here_alone(address: str) -> bool:
    """Whether a cluster listens on the loopback and nowhere else, where Ray would not look for it unless it is told."""
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
