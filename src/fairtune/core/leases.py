"""Leases: who alone may work on a folder, among processes of any number of machines that share a disk, without flock.

Each taking is a generation: a file `<n>` in the folder's `.lease/`, made by an exclusive create, which even an old NFS decides on
the server. The highest generation owns. Its holder rewrites it in place every few seconds; whoever wants the folder watches that
file, and once it says nothing new for the lease's time creates generation n + 1: of several takers one succeeds. So nobody
deletes what another may be judging, and no two machines compare clocks: silence is measured by the watcher's own. A holder on this
machine whose process is gone needs no waiting.

A holder that was suspended, or lost its disk, may wake up to find itself replaced. It asks at every safe point (`check`), and
again before anything is made to last (`require_held`); then it gets `LeaseLost` and writes nothing. Files of a lease go away
when its work is finished for good, so whoever gets one looks first whether there is still something to do.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.errors import LeaseLost
from fairtune.core.files import BINARY, aside_of, parse_json, read_regular
from fairtune.core.machine import boot_name, process_mark

FOLDER = ".lease"
WIDTH = 512
"""Bytes of a lease's file, so that it can be rewritten in one piece."""
NAME_LENGTH = 100


@dataclass(frozen=True)
class LeaseTimes:
    """Seconds between two beats of a holder, and of silence after which it counts as dead."""

    beat: float = 5.0
    silence: float = 60.0
    look: float = 1.0


TIMES = LeaseTimes()


@dataclass(frozen=True)
class Holder:
    """A process, so that those of its own machine can tell whether it still lives.

    Args:
        boot: of the machine, with the space that its process ids are of.
        mark: when the process began, in a form that its machine knows.
    """

    host: str
    boot: str
    pid: int
    mark: str

    @classmethod
    def here(cls) -> Holder:
        pid = os.getpid()
        return cls(socket.gethostname()[:NAME_LENGTH], boot_name(), pid, process_mark(pid) or "")

    @property
    def is_dead(self) -> bool:
        """Whether the process is known to be gone; never of one on another machine."""
        return self.boot == boot_name() and process_mark(self.pid) != self.mark

    @property
    def name(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True)
class SeenLease:
    """A generation as it is on the disk just now.

    Args:
        content: its bytes; that they change is a sign of life.
        holder: None where it cannot be read just now.
        age: seconds since its file changed, by the clocks of two machines: for views alone.
    """

    generation: int
    content: bytes
    holder: Holder | None
    ended: bool
    age: float


def see_lease(folder: Path) -> SeenLease | None:
    """The generation in force of a folder; None where nobody has had it."""
    generation = _highest(folder / FOLDER)
    if generation is None:
        return None
    file = folder / FOLDER / str(generation)
    try:
        content, changed = read_regular(file, WIDTH), file.stat().st_mtime
    except OSError:
        return SeenLease(generation, b"", None, False, 0.0)
    holder, ended = _parse(content)
    return SeenLease(generation, content, holder, ended, max(0.0, time.time() - changed))


def is_leased(folder: Path, times: LeaseTimes = TIMES) -> bool:
    """Whether somebody seems to work on a folder, for views: who looks once has the file's time and nothing else."""
    seen = see_lease(folder)
    return seen is not None and not _is_over(seen) and seen.age < times.silence


class Lease:
    """A lease that this process holds. Its thread beats until it is released, or taken over."""

    def __init__(self, folder: Path, generation: int, holder: Holder, times: LeaseTimes) -> None:
        self.folder, self.generation = folder, generation
        self._holder, self._times, self._beats = holder, times, 0
        self._ended, self._lost = threading.Event(), False
        self._guard = threading.Lock()
        self._beaten = _now()
        self._thread = threading.Thread(target=self._keep_beating, name="fairtune-lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Go on only where the lease is ours; cheap while it beats, so that it can be asked at every step.

        Raises:
            LeaseLost: another process has taken over.
        """
        if self._lost or _now() - self._beaten > self._times.silence / 2:
            self.confirm()

    def confirm(self) -> None:
        """The same, with a look at the disk.

        Raises:
            LeaseLost: another process has taken over, or the disk cannot tell and others may have.
        """
        if not self._beat():
            raise LeaseLost(f"{self.folder}: another process has taken over, since this one was silent for too long.")

    def release(self, *, finished: bool) -> None:
        """Give it back.

        Args:
            finished: there will be nothing to do in the folder any more, so nothing of the lease need be left.
        """
        self._ended.set()
        self._thread.join(self._times.silence)
        with self._guard, contextlib.suppress(OSError):
            if self._lost or self._is_overtaken():
                return
            if finished:
                shutil.rmtree(self.folder / FOLDER, ignore_errors=True)
            else:
                self._write(ended=True)

    def _keep_beating(self) -> None:
        while not self._ended.wait(self._times.beat) and not self._lost:
            with contextlib.suppress(OSError):  # a disk that is away for a moment; `check` notices if it stays so
                self._beat()

    def _beat(self) -> bool:
        """Say that this process lives; whether the lease is still its own."""
        with self._guard:
            if self._ended.is_set():
                return not self._lost
            began = _now()
            try:
                self._lost = self._lost or self._is_overtaken()
                if not self._lost:
                    self._write()
                    self._beaten = began
            except FileNotFoundError:  # the folder was deleted or moved away; the run notices that itself
                return not self._lost
            except OSError:
                return not self._lost and _now() - self._beaten < self._times.silence
            return not self._lost

    def _is_overtaken(self) -> bool:
        highest = _highest(self.folder / FOLDER)
        return highest is not None and highest > self.generation

    def _write(self, ended: bool = False) -> None:
        """In place, so that readers on NFS, who keep a name's file for a while, see it."""
        self._beats += 1
        handle = os.open(self.folder / FOLDER / str(self.generation), os.O_WRONLY | BINARY)
        try:
            os.write(handle, _content(self._holder, self._beats, ended))
        finally:
            os.close(handle)


class LeaseWatch:
    """Watches a folder that somebody else may hold, and takes it once nobody does. Ask it every `times.look` seconds."""

    def __init__(self, folder: Path, times: LeaseTimes = TIMES, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._times, self._clock = folder, times, clock
        self._seen: tuple[int, bytes] | None = None
        self._since = clock()
        self.holder: Holder | None = None

    def try_take(self) -> Lease | None:
        """The lease, or None while another process has it.

        Raises:
            OSError: the folder cannot be written.
        """
        seen = see_lease(self._folder)
        if seen is not None and not self._is_free(seen):
            self.holder = seen.holder or self.holder
            return None
        generation, holder = 1 if seen is None else seen.generation + 1, Holder.here()
        (self._folder / FOLDER).mkdir(parents=True, exist_ok=True)
        try:
            ours = _create(self._folder / FOLDER / str(generation), _content(holder, 0))
        except FileNotFoundError:  # it was finished, and cleared away, in this very moment; look again
            return None
        return Lease(self._folder, generation, holder, self._times) if ours else None

    def _is_free(self, seen: SeenLease) -> bool:
        if _is_over(seen):
            return True
        now = self._clock()
        if self._seen != (seen.generation, seen.content):
            self._seen, self._since = (seen.generation, seen.content), now
        return now - self._since > self._times.silence


_held: dict[str, Lease | _FollowedLease] = {}


@contextmanager
def held_by_us(lease: Lease) -> Iterator[Lease]:
    """Let `require_held` know of a lease meanwhile."""
    key = os.path.abspath(lease.folder)  # noqa: PTH100 - `resolve` asks the disk, which may have gone
    _held[key] = lease
    try:
        yield lease
    finally:
        _held.pop(key, None)


def require_held(folder: Path) -> None:
    """Before something in a folder is made to last: still ours? Of a folder that this process has no lease on, nothing is asked.

    Raises:
        LeaseLost: another process has taken over.
    """
    if (lease := _held.get(os.path.abspath(folder))) is not None:  # noqa: PTH100
        lease.confirm()


def held_generation(folder: Path) -> int | None:
    """Of the lease that this process has on a folder, for processes that work for it."""
    lease = _held.get(os.path.abspath(folder))  # noqa: PTH100
    return None if lease is None else lease.generation


@contextmanager
def followed(folder: Path, generation: int | None) -> Iterator[None]:
    """Let `require_held` ask meanwhile whether a lease that another process of this machine holds is still in force."""
    key = os.path.abspath(folder)  # noqa: PTH100
    if generation is not None:
        _held[key] = _FollowedLease(folder, generation)
    try:
        yield
    finally:
        _held.pop(key, None)


@dataclass(frozen=True)
class _FollowedLease:
    """A lease of the process that started this one, and beats for both."""

    folder: Path
    generation: int

    def confirm(self) -> None:
        if _highest(self.folder / FOLDER) != self.generation:
            raise LeaseLost(f"{self.folder}: another process has taken over.")


def _is_over(seen: SeenLease) -> bool:
    return seen.ended or (seen.holder is not None and seen.holder.is_dead)


def _highest(folder: Path) -> int | None:
    """Listing asks the server, where looking for one name may be answered from a client's memory."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except FileNotFoundError:
        return None
    return max((int(name) for name in names if name.isdecimal() and name.isascii()), default=None)


def _create(file: Path, content: bytes) -> bool:
    """Make a file that must not be there, with its content at once; whether it was not."""
    aside = aside_of(file)
    aside.write_bytes(content)
    try:
        os.link(aside, file)
        return True
    except FileExistsError:
        return aside.stat().st_nlink > 1  # NFS may have done it, lost the answer and asked again
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        with contextlib.suppress(FileExistsError), file.open("xb") as made:
            made.write(content)
            return True
        return False
    finally:
        aside.unlink(missing_ok=True)


def _content(holder: Holder, beat: int, ended: bool = False) -> bytes:
    text = json.dumps({"beat": beat, "ended": ended, **vars(holder)})
    return text.encode().ljust(WIDTH - 1)[: WIDTH - 1] + b"\n"


def _parse(content: bytes) -> tuple[Holder | None, bool]:
    try:
        found: Any = parse_json(content)
        holder = Holder(*(found[name] for name in ("host", "boot", "pid", "mark")))
        valid = all(isinstance(text, str) for text in (holder.host, holder.boot, holder.mark)) and isinstance(
            holder.pid, int
        )
        return (holder if valid else None), found.get("ended") is True
    except (ValueError, KeyError, TypeError, AttributeError):
        return None, False


def _now() -> float:
    """Seconds that also pass while the machine is suspended, where the system counts them."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)
