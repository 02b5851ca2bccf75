"""Files of rows: which there are, what they hold, how they are opened, unpacked and decoded, and what can be wrong with one."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from fairtune.core.cache import content_hash, key_of
from fairtune.core.errors import DataError, nearest, one_of

FORMATS = ("csv", "tsv", "jsonl", "parquet", "txt")
DELIMITERS = {"csv": ",", "tsv": "\t"}
UTF8 = "utf-8-sig"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
WESTERN = "windows-1252"
BLOCK = 1 << 20
"""Bytes that are read at a time."""
LONGEST = 4 << 20
"""Characters in a line. More is a mistake in the file, or not a text."""
AROUND = 30
"""Bytes before and after one that is not UTF-8, which a message shows."""


def suffix_of(file: Path) -> str:
    """The ending of a file's name in lower case, without any .gz."""
    return (file.with_suffix("") if _is_packed(file) else file).suffix.lower()


def format_of(file: Path, allowed: Sequence[str] = FORMATS, or_else: str = "") -> str:
    """The format that a file's name ends in, without any .gz.

    Args:
        or_else: what a user may do instead.
    """
    found = suffix_of(file)
    if found.removeprefix(".") not in allowed:
        known = one_of(f".{one}" for one in allowed)
        raise DataError(f"{file}: unknown format '{found or file.name}'; allowed: {known}, each also .gz.{or_else}")
    return found.removeprefix(".")


def _is_packed(file: Path) -> bool:
    return file.suffix.lower() == ".gz"


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
    """What can be wrong with reading any file, said of this one."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{file}: the gzip file is damaged or cut off ({error}); fetch or make it again.") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}.") from None


def shards(path: Path) -> list[Path]:
    """The file itself, or the files of a folder in the order of their names; all of one format."""
    if not path.is_dir():
        format_of(path)
        return [path]
    found = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith((".", "_"))]
    known = [f".{one}" for one in FORMATS]
    data = [file for file in found if suffix_of(file) in known]
    if not data:
        raise DataError(f"{path}: the folder has no data files; allowed: {one_of(known)}, each also .gz.")
    formats = sorted({suffix_of(file) for file in data})
    if len(formats) > 1:
        raise DataError(f"{path}: the folder has files of several formats ({one_of(formats)}); keep one format in it.")
    return data


def file_identity(path: Path) -> str:
    """What a file or a folder of shards holds, as a hash."""
    with explain_errors(path):
        files = shards(path)
        require_file(path)
        hashes = [content_hash(file) for file in files]
    return hashes[0] if len(hashes) == 1 else key_of(hashes)


def open_file(file: Path) -> IO[bytes]:
    """A file to read, unpacked if it ends in .gz."""
    return cast(IO[bytes], gzip.open(file, "rb")) if _is_packed(file) else file.open("rb")


def decode(where: Path | str, read: Callable[[int], bytes], encoding: str | None = None) -> tuple[str, Iterator[str]]:
    """How a file is encoded, and its text, a block at a time, with its own line ends.

    Nothing is guessed that could garble a text: without a mark at its beginning a file is UTF-8, or its reader says otherwise.

    Args:
        encoding: as Python calls it, where a user says so.
    """
    start = read(BLOCK)
    if encoding is None:
        encoding = "utf-16" if start.startswith(UTF16_MARKS) else UTF8
    return encoding, _blocks(where, read, encoding, start)


def _blocks(where: Path | str, read: Callable[[int], bytes], encoding: str, piece: bytes) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)()
    line, last = 1, ""
    while True:
        try:
            text = decoder.decode(piece, final=not piece)
        except UnicodeError as error:
            if encoding != UTF8 or not isinstance(error, UnicodeDecodeError):
                wrong = f"not encoded as was said ({error}); name another encoding, or save it as UTF-8."
                raise DataError(f"{where}: {wrong}") from None
            yield error.object[: error.start].decode(encoding)
            before = last.encode() + error.object[: error.start]
            begun = before.rpartition(b"\n")[2]
            after = error.object[error.start :][:AROUND].partition(b"\n")[0]
            seen = (begun[-AROUND:] + after).strip().decode(WESTERN, errors="replace")
            raise DataError(
                f"{where}: line {line + before.count(10)} is not UTF-8 (byte 0x{error.object[error.start]:02x} at column "
                f"{len(begun) + 1}); save it as UTF-8 (`iconv -f {WESTERN} -t UTF-8`), or say how it is encoded: "
                f"`encoding: {WESTERN}` in the task, `--encoding {WESTERN}` on the command line. In {WESTERN} it reads: {seen!r}."
            ) from None
        if text:
            yield text
        if not piece:
            return
        line += text.count("\n")
        last = text.rpartition("\n")[2] if "\n" in text else last + text
        piece = read(BLOCK)


def head_of(blocks: Iterator[str], lines: int) -> tuple[str, bool]:
    """The beginning of a text with so many whole lines, and whether that is all of it."""
    text = ""
    while text.count("\n") + text.count("\r") < lines and len(text) <= LONGEST:
        block = next(blocks, None)
        if block is None:
            return text, True
        text += block
    return text, False


def long_line(where: Path | str, number: int) -> DataError:
    """That a line is longer than memory should hold."""
    return DataError(
        f"{where}: line {number} is longer than {LONGEST:,} characters; no text is. Is this the right file, with "
        "line ends? Break the line or remove it."
    )


def last_line_end(text: str) -> int:
    """Where the last whole line of a text ends; what follows a carriage return may belong to the same end."""
    return max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1
