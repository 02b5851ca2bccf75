"""Folders that appear whole or not at all, and never in place of another."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from fairtune.core.errors import LedgerError
from fairtune.core.files import aside_of, sync_folder


def require_new(out: Path) -> None:
    """Refuse to write where something is."""
    if os.path.lexists(out):
        raise LedgerError(f"{out} exists already and was left as it is; choose another folder with --out.")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name once it is full and on the disk.

    Raises:
        LedgerError: there is something of that name, or it cannot be written.
    """
    require_new(out)
    aside = aside_of(out)
    try:
        aside.mkdir(parents=True)
        yield aside
        _sync(aside)
        require_new(out)
        aside.rename(out)
        sync_folder(out.parent)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LedgerError(
            f"{out} cannot be written ({reason}); mend that, or choose another folder with --out."
        ) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_dir():
            sync_folder(path)
        else:
            with path.open("rb") as handle:
                os.fsync(handle.fileno())
    sync_folder(folder)
