"""Folders that appear whole or not at all, and what their files hold: written aside, renamed, with a manifest of sha256 sums."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairtune.core.files import aside_of, sha256_of, sync


@contextmanager
def write_folder(path: Path, *, replace: bool = False, durable: bool = True) -> Iterator[Path]:
    """A folder to fill, which gets its name once it is full; a crash leaves what was there before.

    Args:
        replace: take the place of a folder of that name, which goes when the new one is there.
        durable: put every file on the disk before the folder gets its name; not for what can be made again.

    Raises:
        FileExistsError: there is something of that name.
        OSError: the folder cannot be written.
    """
    aside = aside_of(path)
    aside.mkdir()
    try:
        yield aside
        if durable:
            for inside in (*aside.rglob("*"), aside):
                sync(inside)
        if not os.path.lexists(path):
            aside.rename(path)
        elif replace:
            _exchange(aside, path)
        else:
            raise FileExistsError(f"{path} exists already")
        if durable:
            sync(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Delete a folder, or whatever is there; renamed first, so that half of one is never taken for the whole."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    doomed = aside_of(path)
    path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _exchange(new: Path, path: Path) -> None:
    old = aside_of(path)
    path.rename(old)
    try:
        new.rename(path)
    except BaseException:
        old.rename(path)
        raise
    remove_folder(old)


@dataclass(frozen=True)
class Change:
    """The first file of a folder that is not as its manifest says."""

    name: str
    how: Literal["missing", "added", "changed"]


def files_of(folder: Path) -> list[str]:
    """Every file in a folder, by its name from there, in order."""
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir())


def sums_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The sha256 of files in a folder, which is what manifests are made of."""
    return {name: sha256_of(folder / name) for name in names}


def first_change(
    folder: Path, sums: Mapping[str, str], present: Iterable[str], trusted: Callable[[str], bool] = lambda _: False
) -> Change | None:
    """What differs from a manifest, or None.

    Args:
        present: the files that are there.
        trusted: whether a file need not be read, since its size and times are those at which it was last seen to be whole.

    Raises:
        OSError: a file cannot be read.
    """
    there = set(present)
    for how, names in (("missing", sums.keys() - there), ("added", there - sums.keys())):
        if names:
            return Change(min(names), how)  # type: ignore[arg-type]
    changed = (name for name in sums if not trusted(name) and sha256_of(folder / name) != sums[name])
    return next((Change(name, "changed") for name in changed), None)
