"""The cache on disk: what is made of data once, found again by what it was made of, and checked before it is used.

An entry is a folder `<cache>/<kind>/<key>/`. It is built beside its place and moved there when it is whole, so that a build that is
killed leaves nothing behind that could be taken for an entry, and two processes may build the same one at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.cache_seals import (
    DamageError,
    check,
    read_note,
    seal,
    write_note,
)
from fairtune.core.errors import DataError
from fairtune.core.files import sha256_of, stat_of

VARIABLE = "FAIRTUNE_CACHE"
RACY = 2.0
"""Seconds after a file's last change in which another change might not show in its times."""
_log = logging.getLogger("fairtune.cache")


@dataclass(frozen=True)
class Use:
    """An entry that was asked for, and whether it had to be built."""

    folder: Path
    built: bool


_watched: ContextVar[list[Use] | None] = ContextVar("watched", default=None)


@contextlib.contextmanager
def watched() -> Iterator[list[Use]]:
    """The entries that are asked for meanwhile."""
    uses: list[Use] = []
    before = _watched.set(uses)
    try:
        yield uses
    finally:
        _watched.reset(before)


def cache_folder() -> Path:
    """`FAIRTUNE_CACHE`, else the user's cache folder."""
    named = os.environ.get(VARIABLE, "").strip()
    home = os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
    return Path(named).expanduser() if named else Path(home).expanduser() / "fairtune"


def key_of(parts: Any) -> str:
    """The name of what is made of these parts (plain data)."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def cached(kind: str, key: str, build: Callable[[Path], None], waiting: Callable[[], None] = lambda: None) -> Path:
    """The folder of an entry, built if it is not there or not whole.

    Args:
        build: fills the folder it is given.
        waiting: called again and again while another process builds the same entry, so that waiting can be stopped.
    """
    folder, built = cache_folder() / kind / key, False
    try:
        if not _is_whole(folder, quietly=True):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _turn(folder, waiting):
                if not _is_whole(folder):
                    _build(folder, build)
                    built = True
    except OSError as error:
        raise DataError(
            f"{folder.parent}: the cache cannot be used ({error.strerror or error}); make room or mend that, or set "
            f"{VARIABLE} to a folder that can be written."
        ) from None
    if (uses := _watched.get()) is not None:
        uses.append(Use(folder, built))
    return folder


def _build(folder: Path, build: Callable[[Path], None]) -> None:
    for left in folder.parent.glob(f"{folder.name}.*.tmp"):  # of builds that were killed: it is our turn now
        _remove(left)
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    scratch.mkdir()
    try:
        build(scratch)
        seal(scratch, place_of(folder))
        if os.path.lexists(folder):  # damaged
            folder.rename(scratch.with_suffix(".old.tmp"))
            _remove(scratch.with_suffix(".old.tmp"))
        try:
            scratch.rename(folder)
        except OSError:
            if not _is_whole(folder):  # where locks do not work, another process may have been first
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _remove(path: Path) -> None:
    """Whatever is there, as far as it can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _turn(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """One process at a time, where the file system has locks."""
    with folder.with_name(f"{folder.name}.lock").open("a") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting()
                time.sleep(0.05)
            except OSError:
                break
        yield


def _is_whole(folder: Path, quietly: bool = False) -> bool:
    """Whether an entry is there and as it was built."""
    if not folder.is_dir():
        return False
    try:
        check(folder, place_of(folder))
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
