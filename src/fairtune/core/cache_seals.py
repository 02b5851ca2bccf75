"""Seals: what the cache notes of files, closed with a hash of the note itself, so that a note that was damaged says nothing.

A seal holds for one place in the cache, named `<kind>/<key>`: a note that was moved or copied to another place says nothing there.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from fairtune.core.files import (
    read_sealed,
    sha256_of,
    stat_of,
    write_sealed,
)

SEAL = "seal.json"
"""The file in an entry that says what its other files are."""
PLACE = "place"
"""The key under which a note says what it is about."""
SMALL = 1 << 16
"""Bytes up to which a file is read again each time: the facts about an entry, on which all else depends, cost nothing to check."""


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


def seal(folder: Path, place: str) -> None:
    """Record what an entry's files are."""
    files = {}
    for file in _files(folder):
        stat = stat_of(file)
        files[file.name] = {"sha256": sha256_of(file), "stat": stat}
    write_note(folder / SEAL, place, {"files": files})


def check(folder: Path, place: str, thorough: bool = False) -> None:
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
    for name in sorted({*sealed} ^ {*there}):
        raise DamageError(f"{name} is missing" if name in sealed else f"{name} does not belong there")
    fresh: dict[str, Any] = {}
    for name, file in there.items():
        facts = sealed[name]
        if file.is_symlink() or not file.is_file() or not isinstance(facts, dict):
            raise DamageError(f"{name} is not a plain file")
        stat = stat_of(file)
        trusted = facts.get("stat") == stat and stat[0] > SMALL and not thorough
        if not trusted and sha256_of(file) != facts.get("sha256"):
            raise DamageError(f"{name} was changed")
        fresh[name] = {"sha256": facts["sha256"], "stat": stat}
    if fresh != sealed and not thorough:
        with contextlib.suppress(OSError):
            write_note(folder / SEAL, place, {"files": fresh})


def _files(folder: Path) -> list[Path]:
    """What an entry consists of; not what systems put anywhere (.nfs..., .DS_Store) or killed writers left, which nobody reads."""
    return sorted(file for file in folder.iterdir() if file.name != SEAL and not file.name.startswith("."))
