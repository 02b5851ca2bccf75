"""The end of an events file: what was added since the last look, without reading the rest again."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from fairtune.ledger.events import SUM, parse_lines

MOST = 8 << 20
"""Bytes that are read at once, so that a file of gigabytes needs no gigabytes of memory."""
KNOWN = 64
"""Bytes before the place where a read ended that must be the same at the next one, or the file is another."""


class EventTail:
    """Reads an events file from where the last read ended.

    Attributes:
        restarted: the last read began at the file's start again, since it is shorter, another one, or gone: what was read before
            counts no more.
        behind: there is more than one read takes; read again.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = str(path)
        self.restarted = self.behind = False
        self._at, self._before = 0, b""
        self._place: tuple[int, int] | None = None

    def read(self) -> list[dict[str, Any]]:
        """The whole lines since the last read; a torn last line waits for its rest."""
        self.restarted = self.behind = False
        try:
            # opening a pipe without a writer would block
            handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            self._restart()
            return []
        except OSError:  # such as a disk that is away for a moment
            return []
        try:
            return self._read(handle)
        except OSError:
            return []
        finally:
            os.close(handle)

    def _read(self, handle: int) -> list[dict[str, Any]]:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return []
        place = found.st_dev, found.st_ino
        if self._place not in (None, place) or found.st_size < self._at or not self._goes_on(handle):
            self._restart()
        self._place = place
        os.lseek(handle, self._at, os.SEEK_SET)
        content = os.read(handle, MOST)
        end = content.rfind(b"\n") + 1
        if len(content) == MOST:
            self.behind = True
            end = end or len(content)  # nobody writes such a line; what is left of it will not fit its sum
        elif _is_whole(content[end:]):
            end = len(content)
        self._at += end
        self._before = (self._before + content[:end])[-KNOWN:] if end < KNOWN else content[end - KNOWN : end]
        return parse_lines(content[:end])

    def _goes_on(self, handle: int) -> bool:
        os.lseek(handle, self._at - len(self._before), os.SEEK_SET)
        return os.read(handle, len(self._before)) == self._before

    def _restart(self) -> None:
        self.restarted = self._at > 0
        self._at, self._before, self._place = 0, b"", None


def _is_whole(line: bytes) -> bool:
    """Whether a last line lacks nothing but its end of line, as after a crash of the machine."""
    return SUM in line and bool(parse_lines(line))
