"""Who may work where: locks between the processes of a machine, and leases among all machines that share a disk.

A lock ends with the process that holds it, however it ends. A file system without locks lets everyone in: then the other guards
(names of each writer's own, renames) must do.

To lease a folder is to create the next number in its `.lease/` exclusively, which a shared disk decides on its server; the highest
number owns. Its owner touches that file every few seconds. Others may take the folder once the file's time has stood still for
`SILENCE_SECONDS` of their own clock (machines need not agree on the time), once the owner has released it (time 0), or, on the
owner's machine, once its process is gone. So of several takers one succeeds, and no one deletes what another judges.

An owner that was suspended, or lost its disk, finds a higher number when it looks again: `LeaseLost`, and it writes nothing more.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from fairtune.core.errors import LeaseLost
from fairtune.core.files import read_json

POLL_SECONDS = 0.01
LEASE = ".lease"
BEAT_SECONDS, SILENCE_SECONDS = 5.0, 60.0
"""Between two touches by an owner, and without one after which it counts as dead."""
_held: dict[str, Lease] = {}


@contextlib.contextmanager
def wait_for_lock(path: Path, check_stop: Callable[[], None]) -> Iterator[None]:
    """Hold the lock as soon as no one else does; `check_stop` is called regularly while we wait."""
    with path.open("a") as handle:
        while not _take(handle.fileno()):
            check_stop()
            time.sleep(POLL_SECONDS)
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock; one that cannot be opened counts as free."""
    with contextlib.suppress(OSError), path.open("rb") as handle:  # readers need not be able to write
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


def is_leased(folder: Path) -> bool:
    """Whether a process seems to work on a folder, for views: judged by one look."""
    number, touched = _look(folder / LEASE)
    return time.time() - touched / 1e9 < SILENCE_SECONDS and not _is_dead(folder / LEASE / str(number))


class Lease:
    """A lease that this process holds; a thread keeps it until it is released or taken over."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder, self.number, self.file = folder, number, folder / LEASE / str(number)
        _held[os.path.abspath(folder)] = self  # noqa: PTH100 - `resolve` asks the disk, which may be away
        self._touched, self._lost, self._ended = time.monotonic(), False, threading.Event()
        self._thread = threading.Thread(target=self._keep, name="fairtune-lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise `LeaseLost` if the lease is known to be lost; cheap, so that it can be asked at every step."""
        if self._lost or time.monotonic() - self._touched > SILENCE_SECONDS / 2:
            self.confirm()

    def confirm(self) -> None:
        """The same with a look at the disk; one that has not answered for too long counts as lost."""
        try:
            self._touch()
        except OSError:
            self._lost = self._lost or time.monotonic() - self._touched > SILENCE_SECONDS
        if self._lost:
            raise LeaseLost(f"{self.folder}: another process has taken over, since this one was silent for too long.")

    def release(self, *, finished: bool) -> None:
        """Give it back; a finished folder keeps no trace of the lease."""
        self._ended.set()
        self._thread.join(SILENCE_SECONDS)
        _held.pop(os.path.abspath(self.folder), None)  # noqa: PTH100
        with contextlib.suppress(OSError):
            if self._lost or _look(self.file.parent)[0] > self.number:
                return
            shutil.rmtree(self.file.parent, ignore_errors=True) if finished else os.utime(self.file, (0, 0))

    def _keep(self) -> None:
        while not self._ended.wait(BEAT_SECONDS) and not self._lost:
            with contextlib.suppress(OSError):  # a disk that is away for a moment; `check` notices if it stays so
                self._touch()

    def _touch(self) -> None:
        began = time.monotonic()
        self._lost = self._lost or _look(self.file.parent)[0] > self.number
        if not self._lost and not self._ended.is_set():
            with contextlib.suppress(FileNotFoundError):  # the folder was deleted; the run notices that itself
                os.utime(self.file)
            self._touched = began


class LeaseWatch:
    """Watches a folder that another process may hold, and takes it once none does. Ask it again and again."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._seen, self._since = folder, (0, 0), time.monotonic()

    def try_take(self) -> Lease | None:
        """The lease, or None while another process has it. Raises OSError where the folder cannot be written."""
        seen = number, touched = _look(self._folder / LEASE)
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        silent = time.monotonic() - self._since > SILENCE_SECONDS
        if touched and not silent and not _is_dead(self._folder / LEASE / str(number)):
            return None
        (self._folder / LEASE).mkdir(parents=True, exist_ok=True)
        try:
            with (self._folder / LEASE / str(number + 1)).open("x") as file:
                json.dump(_this_process(), file)
        except (FileExistsError, FileNotFoundError):  # another was quicker, or it was finished at this very moment
            return None
        return Lease(self._folder, number + 1)


def require_held(folder: Path) -> None:
    """Raise `LeaseLost` where this process had a lease on a folder and another has taken over; asked before anything lasting."""
    if (lease := _held.get(os.path.abspath(folder))) is not None:  # noqa: PTH100
        lease.confirm()


def _look(leases: Path) -> tuple[int, int]:
    """The number in force, and when it was touched last; zeros where there is none."""
    try:  # a listing and an open file ask the server; facts about a name may come from a client's memory
        number = max((int(name) for name in os.listdir(leases) if name.isdecimal()), default=0)  # noqa: PTH208
        with (leases / str(number)).open("rb") as file:
            return number, os.fstat(file.fileno()).st_mtime_ns
    except FileNotFoundError:
        return 0, 0


def _this_process() -> dict[str, object]:
    return {"machine": _machine(), "pid": os.getpid(), "began": psutil.Process().create_time()}


def _machine() -> str:
    """One start of one machine, and one container on it: processes that share it can look for each other by id."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 - not a path
    except OSError:
        return platform.node()


def _is_dead(lease: Path) -> bool:
    """Whether the owner is known to be gone; never of one on another machine."""
    owner = read_json(lease) or {}
    if owner.get("machine") != _machine():
        return False
    try:
        process = psutil.Process(owner["pid"])
        return process.status() == psutil.STATUS_ZOMBIE or abs(process.create_time() - owner["began"]) > 5.0
    except psutil.NoSuchProcess:
        return True
