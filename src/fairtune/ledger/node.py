"""The node and the cards of a run: enough to tell whether two runs had the same, without naming a machine of one's own."""

from __future__ import annotations

import hashlib
import hmac
import os
import sys
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

NODE = "FAIRTUNE_NODE"
"""The variable in which whoever starts a run on a cluster may say how that calls the node."""
SCHEDULERS = (NODE, "SLURMD_NODENAME")
MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
LONGEST = 200
MULTICAST = 1 << 40
"""Set in an address that Python drew because it found none of the machine's."""


def node_name() -> str | None:
    """A cluster's node as its scheduler calls it; elsewhere a short sum that only tells whether two machines are one."""
    named = next((name for variable in SCHEDULERS if (name := os.environ.get(variable, "").strip())), None)
    return named[:LONGEST] if named is not None else _anonymous()


@cache
def _anonymous() -> str | None:
    """From the system's id, which must not be shown itself: who has the sum cannot go back, or join it with other programs'."""
    for file in MACHINE_IDS:
        with suppress(OSError):
            if found := file.read_bytes().strip():
                return _keyed(found)
    address = uuid.getnode()
    return None if address & MULTICAST else _keyed(str(address).encode())


def _keyed(found: bytes) -> str:
    return f"machine-{hmac.new(found, b'fairtune: the node of a run', hashlib.sha256).hexdigest()[:8]}"


def own_cards(device: str, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The card that a run has, as torch sees it: others may be in the machine, of another kind.

    Args:
        known: every card, as NVML tells of them; of these, the driver.
    """
    torch = sys.modules.get("torch")
    if not device.startswith("cuda") or torch is None or not torch.cuda.is_available():
        return []
    number = device.partition(":")[2]
    index = int(number) if number.isdecimal() else 0
    found = torch.cuda.get_device_properties(index if index < torch.cuda.device_count() else 0)
    driver = next((gpu.get("driver") for gpu in known if gpu.get("driver")), None)
    return [{"name": str(found.name), "memory_bytes": int(found.total_memory), "driver": driver}]
