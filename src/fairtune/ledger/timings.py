"""Timing sessions of a study, as they were measured: one sealed file each under `timing/`, never changed, never replaced."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError
from fairtune.core.files import read_sealed, write_sealed

FORMAT = 1
FOLDER = "timing"
AGAIN = "A/A"
"""Under which name the second copy of the reference goes."""


def write_session(home: Path, record: Mapping[str, Any]) -> Path:
    """Keep a session next to those that were before it.

    Raises:
        LedgerError: the folder cannot be written.
    """
    folder = home / FOLDER
    name = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(record["time"]))
    names = (f"{name}-{number}.json" if number > 1 else f"{name}.json" for number in count(1))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = next(folder / name for name in names if not (folder / name).exists())
        write_sealed(path, record)
    except OSError as error:
        raise LedgerError(
            f"{folder}: the times cannot be written ({error.strerror}); fix that or use another --runs."
        ) from None
    return path


def read_sessions(home: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Every session of a study, the oldest first, and the files that are not what was written."""
    found, damaged = [], []
    for path in sorted((home / FOLDER).glob("*.json")):
        try:
            record = read_sealed(path)
            if record.get("format") != FORMAT or not isinstance(record.get("rounds"), list):
                raise ValueError("is not a timing session of this version")
        except (OSError, ValueError) as error:
            damaged.append(f"{FOLDER}/{path.name}: {error}")
        else:
            found.append(record)
    return sorted(found, key=lambda record: float(record["time"])), damaged
