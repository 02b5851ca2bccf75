"""The cache on disk: what was made of data once, found again by what it was made of. It can be deleted at any time.

An entry is a folder `<cache>/<area>/<key>/` or a file `<cache>/<area>/<key>.json`. It is built under another name and renamed when
it is whole, so that a build that is killed leaves no entry behind. One that cannot be read is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fairtune.core.errors import DataError
from fairtune.core.files import ASIDE, remove, remove_leftovers, sha256_of, stat_of, write_atomically, write_folder
from fairtune.core.locks import is_locked, wait_for_lock
from fairtune.core.stages import check_stop

VARIABLE = "FAIRTUNE_CACHE"
AREAS = {
    "blocks": "text for language models as tokens",
    "cards": "data cards",
    "contents": "hashes of files",
    "features": "texts as vectors of an encoder",
    "figures": "figures of reports",
    "lengths": "lengths of examples in tokens",
    "suited": "what architectures can do",
    "tasks": "tasks, read and checked",
    "tokenizer": "tokenizers that were trained, and sizes of others",
    "tokens": "tasks as tokens",
}
"""The folders that `clear` looks into; a user may have named a folder as the cache that holds other things too."""
ENTRY = re.compile(rf"\.?(?P<key>[0-9a-f]{{32}})(\.json)?(\.[0-9a-f]{{16}}{re.escape(ASIDE)})?")
UNREADABLE = (OSError, ValueError, LookupError, TypeError, EOFError)
"""What reading an entry raises that is missing, truncated or was edited; Arrow's and NumPy's own errors are among them."""
RACY_SECONDS = 2.0
"""After a file's last change, another change might not show in its times."""
T = TypeVar("T")
built: list[Path] = []
"""The entries that this process has built, for who says what was new."""


def cache_folder() -> Path:
    """`FAIRTUNE_CACHE`, else the user's cache folder."""
    named = os.environ.get(VARIABLE, "").strip()
    home = os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
    return Path(named).expanduser() if named else Path(home).expanduser() / "fairtune"


def key_of(parts: Any) -> str:
    """The key of what is made from these parts (plain data)."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def cached(area: str, key: str, build: Callable[[Path], None], read: Callable[[Path], T]) -> T:
    """What `read` makes of an entry's folder, which `build` fills first if it is missing or cannot be read."""
    folder = cache_folder() / area / key
    with suppress(*UNREADABLE):
        return read(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with wait_for_lock(folder.with_name(f"{key}.lock"), check_stop):
            with suppress(*UNREADABLE):
                return read(folder)  # another process built it meanwhile
            remove_leftovers(folder.parent, of=folder)
            with write_folder(folder, replace=True, durable=False) as scratch:
                build(scratch)
            built.append(folder)
            return read(folder)
    except OSError as error:
        raise DataError(
            f"{folder.parent}: the cache cannot be used ({error.strerror or error}); make room or fix that, run "
            f"`fairtune data cache --clear`, or set {VARIABLE} to a folder that can be written."
        ) from None


def cached_json(area: str, key: str, make: Callable[[], Any]) -> Any:
    """The plain data that `make` returns, made once; where the cache cannot be written, every time."""
    file = cache_folder() / area / f"{key}.json"
    with suppress(*UNREADABLE):
        return json.loads(file.read_bytes())["value"]
    text = json.dumps({"value": make()})
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text.encode(), durable=False)
    built.append(file)
    return json.loads(text)["value"]


def content_hash(file: Path) -> str:
    """sha256 of a file; read again only when its size or one of its times has changed."""
    looks = stat_of(file)
    if time.time() - looks[2] / 1e9 < RACY_SECONDS:
        return sha256_of(file)
    return str(cached_json("contents", key_of([str(file.resolve()), looks]), lambda: sha256_of(file)))


@dataclass(frozen=True)
class CacheArea:
    """How many entries an area of the cache has, and their size in bytes; with what is being built, or was when it was killed."""

    entries: int
    size: int


def contents() -> dict[str, CacheArea]:
    """The areas of the cache that hold anything, by name."""
    sizes: dict[str, list[int]] = {}
    for area, path, _ in _entries():
        sizes.setdefault(area, []).append(size_of(path))
    return {area: CacheArea(len(found), sum(found)) for area, found in sizes.items()}


def clear() -> CacheArea:
    """Remove every entry that no process is building now, and say how many and how large; what is open stays readable."""
    sizes = []
    try:
        for _, path, lock in _entries():
            if not is_locked(lock):
                sizes.append(size_of(path))
                remove(path)
    except OSError as error:
        raise DataError(f"{cache_folder()}: cannot be cleared: {error.strerror or error} ({error.filename}).") from None
    return CacheArea(len(sizes), sum(sizes))


def size_of(path: Path) -> int:
    """Bytes in a file or a folder; 0 if it is gone."""
    with suppress(OSError):
        return sum(map(size_of, path.iterdir())) if path.is_dir() else path.stat().st_size
    return 0


def _entries() -> Iterator[tuple[str, Path, Path]]:
    """By area each entry, with the lock of the process that builds it. Locks stay: a process may wait for one."""
    for area in AREAS:
        folder = cache_folder() / area
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if named := ENTRY.fullmatch(path.name):
                yield area, path, folder / f"{named['key']}.lock"
