"""The cache on disk: what is made of data once, found again by what it was made of, and checked before it is used.

An entry is a folder `<cache>/<area>/<key>/`. It is built beside its place and moved there when it is whole, so that a build that is
killed leaves nothing behind that could be taken for an entry, and two processes may build the same one at once. Its `seal.json` has
the sha256 of every file, and of itself. A seal holds for one place, `<area>/<key>`: one that was moved or copied says nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError
from fairtune.core.files import (
    read_sealed,
    remove_leftovers,
    sha256_of,
    stat_of,
    write_sealed,
)
from fairtune.core.folders import first_change, write_folder
from fairtune.core.locks import wait_for_lock

VARIABLE = "FAIRTUNE_CACHE"
RACY = 2.0
"""Seconds after a file's last change in which another change might not show in its times."""
SEAL = "seal.json"
"""The file in an entry that says what its other files are."""
PLACE = "place"
"""The key under which a note says what it is about."""
SMALL = 1 << 16
"""Bytes up to which a file is read again each time: the facts about an entry, on which all else depends, cost nothing to check."""


CHANGES = {"missing": "is missing", "added": "does not belong there", "changed": "was changed"}
_log = logging.getLogger("fairtune.cache")


@dataclass(frozen=True)
class CacheUse:
    """An entry that was asked for, and whether it had to be built."""

    folder: Path
    built: bool


_recorded: ContextVar[list[CacheUse] | None] = ContextVar("recorded", default=None)


@contextlib.contextmanager
def recorded_uses() -> Iterator[list[CacheUse]]:
    """The entries that are asked for meanwhile."""
    uses: list[CacheUse] = []
    before = _recorded.set(uses)
    try:
        yield uses
    finally:
        _recorded.reset(before)


def cache_folder() -> Path:
    """`FAIRTUNE_CACHE`, else the user's cache folder."""
    named = os.environ.get(VARIABLE, "").strip()
    home = os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
    return Path(named).expanduser() if named else Path(home).expanduser() / "fairtune"


def key_of(parts: Any) -> str:
    """The name of what is made of these parts (plain data)."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def cached(area: str, key: str, build: Callable[[Path], None], check_stop: Callable[[], None] = lambda: None) -> Path:
    """The folder of an entry, built if it is not there or not whole.

    Args:
        build: fills the folder it is given.
        check_stop: called again and again while another process builds the same entry, so that waiting can be stopped.
    """
    folder, built = cache_folder() / area / key, False
    try:
        if not _is_whole(folder, quietly=True):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with wait_for_lock(lock_of(folder), check_stop):
                if not _is_whole(folder):
                    _build(folder, build)
                    built = True
    except OSError as error:
        raise DataError(
            f"{folder.parent}: the cache cannot be used ({error.strerror or error}); make room or fix that, or set "
            f"{VARIABLE} to a folder that can be written."
        ) from None
    if (uses := _recorded.get()) is not None:
        uses.append(CacheUse(folder, built))
    return folder


def _build(folder: Path, build: Callable[[Path], None]) -> None:
    remove_leftovers(folder.parent, of=folder)  # of builds that were killed: it is our turn now
    damaged = os.path.lexists(folder)
    try:
        with write_folder(folder, replace=damaged, durable=False) as scratch:
            build(scratch)
            seal_entry(scratch, place_of(folder))
    except OSError:
        if not _is_whole(folder, quietly=True):  # where locks do not work, another process may have been first
            raise


def lock_of(folder: Path) -> Path:
    """What who builds an entry holds meanwhile, where the file system has locks."""
    return folder.with_name(f"{folder.name}.lock")


def _is_whole(folder: Path, quietly: bool = False) -> bool:
    """Whether an entry is there and as it was built."""
    if not folder.is_dir():
        return False
    try:
        check_entry(folder, place_of(folder))
    except (OSError, DamageError) as error:
        if not quietly:
            _log.warning("fairtune: %s: the cached data is damaged (%s); it is made again", folder, error)
        return False
    return True


def place_of(path: Path) -> str:
    """What an entry or a note is called within the cache, wherever that is: it may be moved as a whole."""
    return f"{path.parent.name}/{path.name.removesuffix('.json')}"


def content_hash(file: Path) -> str:
    """sha256 of a file; read again only when its size or one of its times has changed.

    A change that leaves all of them as they were, as a failing disk makes it, is beyond this.
    """
    before = stat_of(file)
    memo = cache_folder() / "contents" / f"{hashlib.sha256(os.fsencode(file.resolve())).hexdigest()[:32]}.json"
    with contextlib.suppress(OSError, DamageError):
        known = read_note(memo, place_of(memo))
        if known.get("stat") == before:
            return str(known["sha256"])
    found = sha256_of(file)
    if time.time() - file.stat().st_ctime > RACY and stat_of(file) == before:
        with contextlib.suppress(OSError):
            memo.parent.mkdir(parents=True, exist_ok=True)
            write_note(memo, place_of(memo), {"stat": before, "sha256": found})
    return found


class DamageError(ValueError):
    """What is in the cache is not what was put there; the message says how that shows."""


def write_note(path: Path, place: str, content: dict[str, Any]) -> None:
    """Write plain data, sealed for its place."""
    write_sealed(path, {**content, PLACE: place})


def read_note(path: Path, place: str) -> dict[str, Any]:
    """What was written.

    Raises:
        DamageError: there is no such note, or it is not as it was written.
    """
    if not path.is_file():  # never a pipe, which would be waited for
        raise DamageError(f"{path.name} is missing")
    try:
        found = read_sealed(path)
    except OSError as error:
        raise DamageError(f"{path.name} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise DamageError(f"{path.name} {error}") from None
    if found.pop(PLACE, None) != place:
        raise DamageError(f"{path.name} is that of another entry")
    return found


def seal_entry(folder: Path, place: str) -> None:
    """Record what an entry's files are."""
    files = {}
    for file in _files(folder):
        stat = stat_of(file)
        files[file.name] = {"sha256": sha256_of(file), "stat": stat}
    write_note(folder / SEAL, place, {"files": files})


def check_entry(folder: Path, place: str, thorough: bool = False) -> None:
    """Refuse an entry that is not as it was sealed.

    A large file whose size and times are the sealed ones is not read; where they differ it is, and sealed with them if its content
    is the same, so that a cache that was copied is read once.

    Args:
        thorough: read every file, whatever its size and times are, and write nothing.

    Raises:
        DamageError: a file is missing, was changed or was added, or the seal itself was.
        OSError: a file cannot be read.
    """
    sealed = read_note(folder / SEAL, place).get("files")
    if not isinstance(sealed, dict) or not sealed:
        raise DamageError(f"{SEAL} names no files")
    there = {file.name: file for file in _files(folder)}
    for name, file in there.items():
        if name in sealed and (file.is_symlink() or not file.is_file() or not isinstance(sealed[name], dict)):
            raise DamageError(f"{name} is not a plain file")

    def trusted(name: str) -> bool:
        stat = stat_of(there[name])
        return sealed[name].get("stat") == stat and stat[0] > SMALL and not thorough

    sums = {name: str(facts.get("sha256")) if isinstance(facts, dict) else "" for name, facts in sealed.items()}
    if change := first_change(folder, sums, there, trusted):
        raise DamageError(f"{change.name} {CHANGES[change.how]}")
    fresh = {name: {"sha256": sums[name], "stat": stat_of(there[name])} for name in sealed}
    if fresh != sealed and not thorough:
        with contextlib.suppress(OSError):
            write_note(folder / SEAL, place, {"files": fresh})


def _files(folder: Path) -> list[Path]:
    """What an entry consists of; not what systems put anywhere (.nfs..., .DS_Store) or killed writers left, which nobody reads."""
    return sorted(file for file in folder.iterdir() if file.name != SEAL and not file.name.startswith("."))
