"""What this machine offers, asked in a way that works on every system."""

from __future__ import annotations

import os


def can_delete_open_files() -> bool:
    """Whether a file that is open, or mapped into memory, can lose its name and stay so; on Windows it cannot be deleted."""
    return os.name != "nt"


def available_cores() -> int:
    """Cores that this process may use: all of the machine's where the system cannot tell (macOS, Windows)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    count = getattr(os, "process_cpu_count", os.cpu_count)  # the first is there from Python 3.13 on
    return count() or 1
