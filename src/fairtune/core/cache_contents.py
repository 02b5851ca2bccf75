"""What the cache holds, whether it is sound, and taking it away: never from under a process that builds it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fairtune.core.cache import DamageError, cache_folder, check_entry, lock_of, place_of, read_note
from fairtune.core.errors import DataError
from fairtune.core.files import ASIDE
from fairtune.core.folders import remove_folder
from fairtune.core.locks import try_lock

AREAS = ("blocks", "cards", "contents", "figures", "lengths", "rows", "suited", "tasks", "tokenizer", "tokens")
"""Areas of the cache, each a folder. Nothing else is looked at, whatever folder a user has named as the cache."""
OURS = re.compile(rf"[0-9a-f]{{32}}(\.json)?|\.(?P<building>[0-9a-f]{{32}})\.[0-9a-f]{{16}}{re.escape(ASIDE)}")


@dataclass(frozen=True)
class CacheArea:
    """The entries in one area of the cache: folders that were built, or notes about files.

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


@dataclass(frozen=True)
class Damaged:
    """An entry or a note that is not as it was written.

    Args:
        why: how that shows, in a few words.
    """

    path: Path
    why: str


@dataclass(frozen=True)
class Verified:
    """What was found in one area of the cache.

    Args:
        sound: entries whose every byte is as it was sealed.
    """

    name: str
    sound: int
    damaged: tuple[Damaged, ...]


def contents() -> list[CacheArea]:
    """The areas of the cache that hold anything, by name."""
    found = []
    for area in _areas():
        paths = _paths(area)
        unfinished = [path for path in paths if path.suffix == ASIDE]
        size = sum(map(size_of, paths))
        if paths:
            found.append(CacheArea(area.name, len(paths) - len(unfinished), len(unfinished), size))
    return found


def verify(check_stop: Callable[[], None] = lambda: None) -> list[Verified]:
    """Read every entry in full and compare it with its seal; nothing is changed, and no damage raises an error.

    Unfinished builds are not entries yet, and an entry that goes away meanwhile is not counted.

    Args:
        check_stop: called before each entry, so that a long check can be shown or stopped.
    """
    found = []
    for name in AREAS:
        sound, damaged = 0, []
        for path in _entries(cache_folder() / name):
            check_stop()
            why = _damage(path)
            if os.path.lexists(path):
                sound += why is None
                damaged += [Damaged(path, why)] if why is not None else []
        if sound or damaged:
            found.append(Verified(name, sound, tuple(damaged)))
    return found


def discard(damaged: Iterable[Damaged]) -> int:
    """Take damaged entries away, so that they are made again when they are needed; returns how many went.

    What another process is building again, and what cannot be removed, stays.
    """
    gone = 0
    for one in damaged:
        with contextlib.suppress(OSError), _lock(one.path) as free:
            if free and _damage(one.path) is not None:
                remove_folder(one.path)
                gone += 1
    return gone


def clear() -> Cleared:
    """Remove every entry that no process is building now. A process that has one open keeps it until it is done."""
    entries = size = busy = 0
    try:
        for area in _areas():
            for path in _paths(area):
                with _lock(path) as free:
                    if free and path.exists():
                        size += size_of(path)
                        entries += path.suffix != ASIDE
                        remove_folder(path)
                    elif not free:
                        busy += path.suffix == ASIDE
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


def _areas() -> list[Path]:
    return [area for name in AREAS if (area := cache_folder() / name).is_dir()]


def _paths(area: Path) -> list[Path]:
    """Entries and unfinished builds. Locks are not entries: they stay, since a process may wait for one."""
    return sorted(path for path in area.iterdir() if OURS.fullmatch(path.name))


def _entries(area: Path) -> list[Path]:
    """Entries, none where there is no such folder or it cannot be looked into."""
    try:
        return [path for path in _paths(area) if path.suffix != ASIDE]
    except OSError:
        return []


def _damage(path: Path) -> str | None:
    """What is wrong with an entry or a note, or None."""
    try:
        if path.suffix == ".json":
            read_note(path, place_of(path))
        else:
            check_entry(path, place_of(path), thorough=True)
    except DamageError as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    return None


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Whether nobody builds this entry; nobody begins to, meanwhile."""
    if path.is_file():
        yield True
        return
    found = OURS.fullmatch(path.name)
    entry = path.with_name(found["building"]) if found and found["building"] else path
    with try_lock(lock_of(entry)) as free:
        yield free
