"""Folders that appear whole or not at all, and never in place of another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from fairtune.core.errors import LedgerError
from fairtune.core.folders import write_folder


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
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with write_folder(out) as aside:
            yield aside
    except FileExistsError:
        require_new(out)
        raise
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LedgerError(
            f"{out} cannot be written ({reason}); fix that, or choose another folder with --out."
        ) from None
