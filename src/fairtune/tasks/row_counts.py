"""How many rows a file was found to have when it was last read, to be told without reading it again."""

from __future__ import annotations

import contextlib
from pathlib import Path

from fairtune.core.cache import DamageError, cache_folder, key_of, place_of, read_note, write_note


def remember_rows(file: Path, rows: int) -> None:
    with contextlib.suppress(OSError):
        note = _note(file)
        note.parent.mkdir(parents=True, exist_ok=True)
        write_note(note, place_of(note), {"is": _looks(file), "rows": rows})


def known_rows(file: Path) -> int | None:
    """The rows, if the file was read before and looks as it did then."""
    with contextlib.suppress(OSError, DamageError):
        note = read_note(_note(file), place_of(_note(file)))
        if note.get("is") == _looks(file):
            return int(note["rows"])
    return None


def _note(file: Path) -> Path:
    return cache_folder() / "rows" / f"{key_of(str(file.resolve()))}.json"


def _looks(file: Path) -> list[int]:
    found = file.stat()
    return [found.st_size, found.st_mtime_ns]
