"""How many threads a process computes with, and how they wait for each other; read by libraries when they are first imported.

Threads wait for each other by spinning, so that a core which another program takes holds them all up. Threads that sleep after a
thousand turns, a few microseconds, lose little on a quiet machine; beside a busy process they are as fast as one thread alone.
"""

from __future__ import annotations

import os
import sys

PATIENT = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
COUNTS = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


def thread_environment(threads: int) -> dict[str, str]:
    """What tells every library of a new process how many threads to use, and several threads to sleep while they wait."""
    return {**dict.fromkeys(COUNTS, str(threads)), **(PATIENT if threads > 1 else {})}


def wait_asleep() -> None:
    """Have this process's threads sleep while they wait, unless torch is there already or the user has said how they wait.

    For processes of fairtune's own; in a user's, threads are the user's business.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in PATIENT):
        os.environ.update(PATIENT)
