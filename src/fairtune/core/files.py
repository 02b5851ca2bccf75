"""Files and folders that a crash leaves old or new, never half; what they hold, as a hash; and JSON that notices a change."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import math
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

ASIDE = ".writing"
"""How the names of files end that are being written, or were when their writer was killed."""
SEAL = "seal"
"""Where a sealed mapping has the sha256 of its content."""


def aside_of(path: Path) -> Path:
    """Where to write what gets a name once it is whole: each writer has its own place, so of two at once one wins."""
    return path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}{ASIDE}")


def write_atomically(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write under another name, fsync, rename; what will be written again in a moment need not be durable."""
    aside = aside_of(path)
    try:
        with aside.open("xb") as handle:
            handle.write(content)
            handle.flush()
            if durable:
                os.fsync(handle.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    if durable:
        _sync(path.parent)


@contextmanager
def write_folder(path: Path, *, replace: bool = False, durable: bool = True) -> Iterator[Path]:
    """A folder to fill, which gets its name once it is full; a crash leaves what was there before.

    Args:
        replace: take the place of what has that name, which goes when the new one is there; else it is a FileExistsError.
        durable: put every file on the disk before the folder gets its name; not for what can be made again.
    """
    aside, old = aside_of(path), aside_of(path)
    aside.mkdir()
    try:
        yield aside
        if durable:
            for inside in (*aside.rglob("*"), aside):
                _sync(inside)
        if os.path.lexists(path):
            if not replace:
                raise FileExistsError(f"{path} exists already")
            path.rename(old)
        aside.rename(path)
        if durable:
            _sync(path.parent)
    finally:
        if os.path.lexists(old) and not os.path.lexists(path):
            old.rename(path)
        remove(aside)
        remove(old)


def remove(path: Path) -> None:
    """Delete a file or a folder, if it is there; a folder is renamed first, so that half of one is never taken for the whole."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    doomed = path if path.suffix == ASIDE else path.rename(aside_of(path))
    shutil.rmtree(doomed, ignore_errors=True)


def remove_leftovers(folder: Path, older_than: float = 0.0, of: Path | None = None) -> None:
    """Remove what killed writers left in a folder, files and folders.

    Args:
        older_than: seconds since its last change, where another writer may be at work; 0 where a lock keeps others out.
        of: only what was to become this.
    """
    with suppress(OSError):
        for left in folder.glob(f".{'*' if of is None else glob.escape(of.name[:40]) + '.*'}{ASIDE}"):
            if time.time() - left.lstat().st_mtime >= older_than:
                remove(left)


def _sync(path: Path) -> None:
    """Put what a file holds on the disk, or make renames in a folder last."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def stat_of(path: Path) -> list[int]:
    """Size, times and place on the disk: a file in which these are the same is taken for unchanged."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def files_of(folder: Path) -> list[str]:
    """Every file in a folder, by its name from there, in order."""
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir())


def sums_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The sha256 of files in a folder."""
    return {name: sha256_of(folder / name) for name in names}


def finite(value: Any) -> Any:
    """The value as plain data: data classes are mappings, and every nan and infinity is None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: finite(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value


def indented_json(value: Any) -> str:
    """JSON that people may read, of `finite` data."""
    return json.dumps(finite(value), indent=1, ensure_ascii=False)


def write_json(path: Path, value: Any) -> None:
    write_atomically(path, (indented_json(value) + "\n").encode("utf-8", "surrogatepass"))


def parse_json(content: str | bytes) -> Any:
    """The value that a JSON text holds; a ValueError also where it is nested too deeply, which json has another error for."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path: Path) -> dict[str, Any] | None:
    """The mapping in a file, or None where there is no file or it does not hold one."""
    with suppress(OSError, ValueError):
        value = parse_json(path.read_bytes())
        return value if isinstance(value, dict) else None
    return None


def sealed(value: Mapping[str, Any]) -> bytes:
    """A mapping as JSON that carries the sha256 of its own content, so that a reader notices a change."""
    plain = {name: inner for name, inner in finite(value).items() if name != SEAL}
    return (json.dumps({**plain, SEAL: _digest(plain)}, indent=1) + "\n").encode()


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    write_atomically(path, sealed(value))


def read_sealed(path: Path) -> dict[str, Any]:
    """What `write_sealed` wrote, without its seal.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not what was written, in words that follow the file's name.
    """
    try:
        value = parse_json(path.read_bytes())
    except ValueError:
        raise ValueError("is not readable JSON") from None
    if not isinstance(value, dict) or SEAL not in value:
        raise ValueError("has no seal: it was changed, or written by an earlier version of fairtune")
    if value.pop(SEAL) != _digest(value):
        raise ValueError("is not what was written: its content does not fit its seal")
    return value


def _digest(value: Any) -> str:
    """sha256 of plain data, whatever the order of its keys and the spaces between them."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_regular(path: Path, most: int) -> bytes:
    """What a file holds; a device or a pipe, which may have no end, is refused.

    Raises:
        OSError: it cannot be read, is not a regular file, or has more than `most` bytes; `strerror` says which.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        found = "it is a folder" if stat.S_ISDIR(mode) else "it is a device or a pipe, not a regular file"
        raise OSError(errno.EINVAL, found, str(path))
    with path.open("rb") as handle:
        content = handle.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes", str(path))
    return content
