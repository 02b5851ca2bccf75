"""Files and folders as a study names them: relative ones start at the study file, wherever the command is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def absolute_folder(given: Any, base: Path) -> str | None:
    """A folder's whole path; None for what is not a folder."""
    if isinstance(given, str) and (given.startswith((".", "~/", "/")) or _is_folder(base / given)):
        return str((base / expanded(given)).resolve())
    return None


def expanded(given: str) -> Path:
    """With the home folder for `~`; as it is, where nobody knows whose that would be."""
    try:
        return Path(given).expanduser()
    except RuntimeError:
        return Path(given)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a folder above it may not be looked into, or no folder has such a name
        return False
