"""The files of a page that is not a study's report: written whole, or refused in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairtune.core.errors import LedgerError
from fairtune.core.files import write_atomically


def write_page(folder: Path, texts: Mapping[str, tuple[str, str]], what: str) -> dict[str, Path]:
    """Write the texts of a page; returns the paths by format.

    Args:
        texts: file name and text of each format.
        what: it is called by in a message.

    Raises:
        LedgerError: the folder cannot be written.
    """
    written = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, (file, text) in texts.items():
            written[name] = folder / file
            write_atomically(written[name], text.encode("utf-8", "replace"))
    except OSError as error:
        raise LedgerError(
            f"{folder}: {what} cannot be written ({error.strerror}); choose another folder with -o."
        ) from None
    return written
