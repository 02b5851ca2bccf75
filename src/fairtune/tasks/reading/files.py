"""Files of any format: opened, unpacked, read line by line, with one sentence for whatever can be wrong with one."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from fairtune.core.errors import DataError, nearest
from fairtune.settings.encodings import ENCODINGS, WESTERN

LONGEST = 4 << 20
"""Characters in a line, or in a text that goes over many lines. More is a mistake in the file, or not a text."""
PIECE = 1 << 16
AROUND = 30
"""Bytes before and after one that is not UTF-8, which a message shows."""
UNPACKED = 1 << 30
"""Bytes to which a packed file may grow that has to be read as a whole."""


def require_file(file: Path) -> None:
    """Refuse what is neither a file nor a folder of files: a pipe would be waited for, and cannot be read twice."""
    with explain_errors(file):
        if not file.exists():
            around = [str(p) for p in file.parent.glob("*")] if file.parent.is_dir() else []
            raise DataError(f"{file}: there is no such file.{nearest(str(file), around)}")
        if not file.is_file() and not file.is_dir():
            raise DataError(
                f"{file}: that is a pipe or a device, not a file; save what it gives in a file, and name that."
            )


@contextmanager
def explain_errors(file: Path | str) -> Iterator[None]:
    """What can be wrong with any file, said of this one; a name in words is a stream, which cannot be looked at again."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: {_not_decoded(file, error)}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{file}: the gzip file is damaged or cut off ({error}); fetch or make it again.") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}.") from None


def open_file(file: Path, mode: str = "rt", encoding: str = "utf-8-sig") -> IO[Any]:
    """A file to read, as UTF-8 unless said otherwise, with its own line ends, unpacked if it ends in .gz."""
    text: dict[str, Any] = {} if "b" in mode else {"encoding": encoding, "newline": ""}
    if file.suffix.lower() == ".gz":
        return cast(IO[Any], gzip.open(file, mode, **text))
    return file.open(mode.replace("t", ""), **text)


def read_whole(file: Path) -> bytes:
    """All that is in a file, unpacked.

    Raises:
        DataError: a packed file is larger than memory should hold.
    """
    if file.suffix.lower() != ".gz":
        return file.read_bytes()
    with gzip.open(file, "rb") as handle:
        content = handle.read(UNPACKED + 1)
    if len(content) > UNPACKED:
        raise DataError(
            f"{file}: unpacked it is larger than {UNPACKED >> 30} GiB; unpack it with `gunzip` and name the file that comes out."
        )
    return content


def _not_decoded(file: Path | str, error: UnicodeDecodeError) -> str:
    """What is wrong with a file's encoding, and the way on: whoever knows it says it, nobody guesses it."""
    if error.encoding.replace("-", "") not in ("utf8", "utf8sig"):
        return f"not encoded as was said ({error.reason}); name another encoding, or save it as UTF-8."
    wrong, seen = f"not UTF-8 ({error.reason})", ""
    if isinstance(file, Path) and file.is_file():
        with explain_errors(file):
            wrong, seen = _not_utf8(file, error)
    reads = f" In {WESTERN} it reads: {seen!r}." if seen else ""
    return (
        f"{wrong}; save it as UTF-8 (`iconv -f {WESTERN} -t UTF-8`), or say how it is encoded: `encoding: {WESTERN}` in the task, "
        f"`--encoding {WESTERN}` on the command line.{reads}"
    )


def _not_utf8(file: Path, error: UnicodeDecodeError) -> tuple[str, str]:
    """Line and byte of the first byte that is not UTF-8, and what stands around it if the file is an older Western one.

    The decoder reads in chunks, so its own position is no use.
    """
    line, column, rest = 1, 0, b""
    with open_file(file, "rb") as handle:
        while piece := handle.readline(PIECE):
            text = rest + piece
            try:
                text.decode("utf-8")
            except UnicodeDecodeError as here:
                if here.end < len(text) or not here.reason.startswith("unexpected end") or piece.endswith(b"\n"):
                    around = text[max(0, here.start - AROUND) : here.start + AROUND].strip()
                    return (
                        f"line {line} is not UTF-8 (byte 0x{text[here.start]:02x} at column {column + here.start + 1})",
                        around.decode(ENCODINGS[WESTERN], errors="replace"),
                    )
                rest, column = text[here.start :], column + here.start
                continue
            ended = piece.endswith(b"\n")
            line, column, rest = line + ended, 0 if ended else column + len(text), b""
    return f"line {line} is not UTF-8 ({error.reason} at column {column + 1})", ""


def whole_lines(file: Path | str, handle: IO[str], number: int = 0) -> Iterator[str]:
    """Lines with their ends, none of them longer than memory should hold.

    Args:
        number: that of the line before.
    """
    while line := handle.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise DataError(
                f"{file}: line {number} is longer than {LONGEST:,} characters; no text is. Is this the right file, with "
                "line ends? Break the line or remove it."
            )
        yield line
