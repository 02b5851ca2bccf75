"""What the cache holds, and taking it away: never from under a process that builds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairtune.errors import DataError
from fairtune.tasks.cache import cache_folder

KINDS = ("blocks", "cards", "contents", "lengths", "rows", "suited", "tasks", "tokenizer", "tokens")
"""Folders of the cache. Nothing else is looked at, whatever folder a user has named as the cache."""
OURS = re.compile(r"[0-9a-f]{32}(\.json|\.[0-9a-z-]+(\.old)?\.tmp)?")


@dataclass(frozen=True)
class Kind:
    """Entries of one kind: folders that were built, or notes about files.

    Args:
        unfinished: builds that are under way, or were killed.
        size: of all that, in bytes.
    """

    name: str
    entries: int
    unfinished: int
    size: int


@dataclass(frozen=True)
class Cleared:
    """What was taken away, and what was left since somebody builds it."""

    entries: int
    size: int
    busy: int


def contents() -> list[Kind]:
    """The kinds of entry in the cache, by name."""
    found = []
    for folder in _kinds():
        paths = _paths(folder)
        unfinished = [path for path in paths if path.suffix == ".tmp"]
        size = sum(map(size_of, paths))
        if paths:
            found.append(Kind(folder.name, len(paths) - len(unfinished), len(unfinished), size))
    return found


def clear() -> Cleared:
    """Take away every entry that nobody builds just now. Who has one open keeps it until done."""
    entries = size = busy = 0
    try:
        for folder in _kinds():
            for path in _paths(folder):
                with _lock_of(path) as free:
                    if free and path.exists():
                        size += size_of(path)
                        entries += path.suffix != ".tmp"
                        _remove(path)
                    elif not free:
                        busy += path.suffix == ".tmp"
    except OSError as error:
        raise DataError(f"{cache_folder()}: cannot be cleared: {error.strerror or error} ({error.filename}).") from None
    return Cleared(entries, size, busy)


def size_of(path: Path) -> int:
    """Bytes in a file or a folder; 0 of what has gone meanwhile."""
    with contextlib.suppress(OSError):
        if path.is_dir():
            return sum(size_of(inside) for inside in path.iterdir())
        return path.stat().st_size
    return 0


def size_text(size: int) -> str:
    """Bytes in the unit that fits."""
    for unit, most in (("B", 1e3), ("kB", 1e6), ("MB", 1e9)):
        if size < most:
            return f"{size / (most / 1e3):.{0 if unit == 'B' else 1}f} {unit}"
    return f"{size / 1e9:.1f} GB"


def _kinds() -> list[Path]:
    return [folder for name in KINDS if (folder := cache_folder() / name).is_dir()]


def _paths(kind: Path) -> list[Path]:
    """Entries and unfinished builds. Locks are no entries: they stay, since a process may wait for one."""
    return sorted(path for path in kind.iterdir() if OURS.fullmatch(path.name))


@contextlib.contextmanager
def _lock_of(path: Path) -> Iterator[bool]:
    """Whether nobody builds this entry; nobody begins to, meanwhile."""
    if path.is_file():
        yield True
        return
    with path.with_name(f"{path.name.partition('.')[0]}.lock").open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass  # a file system without locks
        yield True


def _remove(path: Path) -> None:
    """An entry goes at once, so that nobody finds half of it."""
    if path.is_file():
        path.unlink(missing_ok=True)
        return
    if path.suffix != ".tmp":
        path = path.rename(path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"))
    shutil.rmtree(path)
