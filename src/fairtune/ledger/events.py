"""Event lines: one JSON object per line, appended, never changed.

A line is with the operating system as soon as it is written, so a killed process loses none. It is on the disk
at once for everything but steps, and for steps at the latest a second later.

Each line carries the `unit` of work it belongs to (an optimizer step, an evaluation). A run that goes on from a checkpoint
says `resumed` with the unit it goes on from; what earlier lines say of that unit and later ones was lost, and is not counted.
"""

from __future__ import annotations

import json
import os
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtune.core.files import finite

SYNC_SECONDS = 1.0
HEAD = 128
"""Bytes of a file's beginning, with the time of its first line; with other ones, the file is another."""
SUM = b', "crc32": "'
"""Stands before the checksum that ends each line, so that a damaged one is not taken for what happened."""
SAMPLE = "device"
"""What a thread of the run sees of its device, now and then."""
LAST = ("finished", "failed")
KEPT = ("warning", "failed", "resumed")
"""What still counts of the time that was lost."""


class EventLog:
    """The events of one run, open for appending; by the run itself, and by a thread that samples its device."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._unit, self._ended = 0, False
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        self._synced = time.monotonic()
        size = os.fstat(self._file).st_size
        self._whole = not size or os.pread(self._file, 1, size - 1) == b"\n"

    def write(self, event: str, unit: int, **values: Any) -> None:
        with self._lock:
            self._unit, self._ended = unit, event in LAST
            self._write(event, unit, values)

    def write_sample(self, **values: Any) -> None:
        """Write how the device is, with the unit that was written last; nothing once the run has come to its end."""
        with self._lock:
            if not self._ended:  # the file is sealed then
                self._write(SAMPLE, self._unit, values)

    def _write(self, event: str, unit: int, values: Mapping[str, Any]) -> None:
        text = json.dumps(finite({"event": event, "unit": unit, "time": round(time.time(), 3), **values}))
        line = text[:-1].encode() + SUM + b'%08x"}\n' % zlib.crc32(text.encode())
        data = line if self._whole else b"\n" + line  # what a crash or a full disk cut short stays a line of its own
        self._whole = False
        while data:
            data = data[os.write(self._file, data) :]
        self._whole = True
        if event == SAMPLE:
            return  # never worth waiting for a disk: the run's own next line takes it along
        if event != "step" or time.monotonic() - self._synced > SYNC_SECONDS:
            os.fsync(self._file)
            self._synced = time.monotonic()

    def close(self) -> None:
        with self._lock:
            self._ended = True  # its number may be another file's soon
            os.close(self._file)


class EventTail:
    """Reads an events file from where the last read ended.

    Attributes:
        restarted: the last read found another file than before, or none: what was read earlier counts no more.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.restarted = path, False
        self._at, self._head = 0, b""

    def read(self) -> list[dict[str, Any]]:
        """The whole lines since the last read that are as they were written.

        Raises:
            OSError: there is a file, and it cannot be read.
        """
        size = self.path.stat().st_size if self.path.is_file() else 0
        self.restarted = size < self._at
        if size in (0, self._at):
            self._at = size
            return []
        with self.path.open("rb") as file:
            head = file.read(HEAD)
            self.restarted = self.restarted or not head.startswith(self._head)
            if self.restarted or not self._at:
                self._at, self._head = 0, head
            file.seek(self._at)
            added = file.read()
        end = added.rfind(b"\n") + 1
        self._at += end
        return parse_lines(added[:end])


def all_events(path: Path) -> list[dict[str, Any]]:
    """Every line that is as it was written; none where there is no file."""
    return EventTail(path).read()


def parse_lines(content: bytes) -> list[dict[str, Any]]:
    """The events of those lines that are as they were written."""
    whole = []
    for line in content.split(b"\n"):
        text, _, found = line.rpartition(SUM)
        if found == b'%08x"}' % zlib.crc32(b"}", zlib.crc32(text)):
            whole.append(text)
    events: list[dict[str, Any]] = json.loads(b"[%b}]" % b"},".join(whole)) if whole else []  # at once: half the time
    return events


def counted_events(path: Path) -> list[dict[str, Any]]:
    """The lines that count: what was lost and done again is left out."""
    counted: list[dict[str, Any]] = []
    for event in all_events(path):
        if event.get("event") == "resumed":
            counted = [one for one in counted if one["unit"] < event["unit"] or one["event"] in KEPT]
        counted.append(event)
    return counted
