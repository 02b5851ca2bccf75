"""What a run ran on: node, hardware, load, versions. No host name but a cluster's own for its nodes, no user, no paths."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from functools import cache
from importlib import metadata
from typing import Any

import psutil

from fairtune.core import __version__
from fairtune.core.files import read_sealed
from fairtune.core.gpus import describe_gpu, driver_version, find_gpus, nvml_held, visible_gpus
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.node import node_name, own_cards

PACKAGES = (
    "torch",
    "transformers",
    "accelerate",
    "peft",
    "tokenizers",
    "safetensors",
    "numpy",
    "scikit-learn",
    "pyarrow",
    "pydantic",
)


def capture_environment(device: str) -> dict[str, Any]:
    """Everything that may explain a difference between two runs of one plan."""
    load = capture_load()
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "fairtune": __version__,
        "python": platform.python_version(),
        "node": node_name(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": cpu_name(),
        "cores": {"physical": psutil.cpu_count(logical=False), "logical": psutil.cpu_count()},
        "memory_bytes": psutil.virtual_memory().total,
        "device": device,
        "cards": own_cards(device, load["gpus"]),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "git": _git_commit(),
        "torch": _torch_settings(),
        "load": load,
    }


LASTING = ("time", "fairtune", "python", "node", "cpu", "device", "cards", "packages", "torch")
"""What is kept of the place where a run began, once it goes on in another."""


def continued(environment: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """The environment of a run that may go on from a saved state, with those in which it was trained before."""
    if before is None:
        return environment
    places: list[dict[str, Any]] = [environment]
    for one in (*before.get("earlier", ()), {name: before[name] for name in LASTING if name in before}):
        if all(_place(one) != _place(other) for other in places):
            places.append(one)
    return {**environment, "earlier": places[1:]} if places[1:] else environment


def _place(environment: dict[str, Any]) -> dict[str, Any]:
    return {name: environment.get(name) for name in LASTING if name != "time"}


def read_environment(folder: RunFolder) -> dict[str, Any] | None:
    """What a run ran on; None where there is no record of it, or not the one that was written."""
    try:
        return read_sealed(folder.environment)
    except (OSError, ValueError):
        return None


def capture_load() -> dict[str, Any]:
    """How busy the machine is now; taken before and after a run."""
    return {
        "time": round(time.time(), 3),
        "load_average": list(os.getloadavg()),
        "memory_available_bytes": psutil.virtual_memory().available,
        "gpus": gpus(),
    }


def gpus() -> list[dict[str, Any]]:
    """Every GPU that NVML knows, with its temperature, use and foreign processes; empty where there is none.

    `visible` are those that this process may use; `other_processes` are those of neither this process nor the one that started it.
    """
    with nvml_held():
        found, driver = find_gpus() or (), driver_version()
        if not found or driver is None:
            return []  # a driver that fell over must not stop a run
        seen = visible_gpus() or []
        return [{**describe_gpu(gpu), "driver": driver, "visible": gpu in seen} for gpu in found]


@cache
def _version(package: str) -> str | None:
    """Of the package that this process would import, or has imported."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def cpu_name() -> str:
    """What the processor is called."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as handle:  # noqa: PTH123 - a kernel file
            names = [line.partition(":")[2].strip() for line in handle if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown"


def _git_commit() -> dict[str, Any] | None:
    """The commit of the folder the command was typed in, and whether files differ from it."""
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=True)
        changes = subprocess.run(
            ["git", "status", "--porcelain"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit.stdout.strip(), "clean": not changes.stdout.strip()}


def _torch_settings() -> dict[str, Any] | None:
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    return {
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.cuda.is_available() else None,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }
