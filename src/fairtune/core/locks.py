"""Locks between processes that end with the process that holds them, however it ends.

A file system without locks lets everyone in: then the other guards (names of each writer's own, renames) must do.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

POLL_SECONDS = 0.01


@contextmanager
def wait_for_lock(path: Path, check_stop: Callable[[], None]) -> Iterator[None]:
    """Hold the lock as soon as no one else does; `check_stop` is called regularly while we wait."""
    with path.open("a") as handle:
        while not _take(handle.fileno()):
            check_stop()
            time.sleep(POLL_SECONDS)
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock; one that cannot be opened counts as free."""
    with suppress(OSError), path.open("rb") as handle:  # readers need not be able to write
        return not _take(handle.fileno())
    return False


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
