"""What a run ran on: node, hardware, load, versions. No host name but a cluster's own for its nodes, no user, no paths."""

from __future__ import annotations

import hashlib
import hmac
import os
import platform
import subprocess
import sys
import time
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from fairtune.core import __version__
from fairtune.core.files import read_sealed
from fairtune.core.machine import describe_gpu, driver_version, find_gpus, nvml_held, visible_gpus
from fairtune.ledger.folders import RunFolder

PACKAGES = (
    "torch", "transformers", "accelerate", "peft", "tokenizers", "safetensors", "numpy", "scikit-learn", "pyarrow", "pydantic",
)  # fmt: skip
LASTING = ("time", "fairtune", "python", "node", "cpu", "device", "cards", "packages", "torch")
"""What is kept of the place where a run began, once it goes on in another."""
NODE = "FAIRTUNE_NODE"
"""The variable in which a cluster's launcher may say what the node is called."""
MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


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


def continued(environment: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """The environment of a run that may go on from a saved state, with those in which it was trained before."""
    if before is None:
        return environment

    def place(one: dict[str, Any]) -> list[Any]:
        return [one.get(name) for name in LASTING if name != "time"]

    places: list[dict[str, Any]] = [environment]
    for one in (*before.get("earlier", ()), {name: before[name] for name in LASTING if name in before}):
        if all(place(one) != place(other) for other in places):
            places.append(one)
    return {**environment, "earlier": places[1:]} if places[1:] else environment


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
        if driver is None:
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
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, None) or platform.processor() or "unknown"


def _git_commit() -> dict[str, Any] | None:
    """The commit of the folder the command was typed in, and whether files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, timeout=30, check=True).stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "clean": not git("status", "--porcelain")}
    except (OSError, subprocess.SubprocessError):
        return None


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


def node_name() -> str | None:
    """A cluster's node as its scheduler calls it; elsewhere a short sum that only tells whether two machines are one."""
    return os.environ.get(NODE, "").strip() or os.environ.get("SLURMD_NODENAME", "").strip() or _anonymous()


@cache
def _anonymous() -> str | None:
    """From the system's id, which must not be shown itself: no one can go back from the sum, or join it with other programs'."""
    found = next((content for file in MACHINE_IDS if file.is_file() and (content := file.read_bytes().strip())), None)
    if found is None:
        return None
    return f"machine-{hmac.new(found, b'fairtune: the node of a run', hashlib.sha256).hexdigest()[:8]}"


def own_cards(device: str, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The card that a run has, as torch sees it: others may be in the machine, of another kind; with the driver that NVML knows."""
    torch = sys.modules.get("torch")
    if not device.startswith("cuda") or torch is None or not torch.cuda.is_available():
        return []
    index = int(device.partition(":")[2] or 0)
    found = torch.cuda.get_device_properties(index if index < torch.cuda.device_count() else 0)
    driver = known[0]["driver"] if known else None
    return [{"name": str(found.name), "memory_bytes": int(found.total_memory), "driver": driver}]
