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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairtune.core.files import finite, read_regular

SYNC_SECONDS = 1.0
LATEST_BYTES = 1 << 18
"""Of a file's end, that are read for its latest lines."""
MOST = 8 << 20
"""Bytes that are read at once, so that a file of gigabytes needs no gigabytes of memory."""
HEAD = 128
"""Bytes of a file's beginning, with the time of its first line, that must be the same at the next read, or the file is another."""
SUM = b', "crc32": "'
"""Stands before the checksum that ends each line, so that a damaged one is not taken for what happened."""
SAMPLE = "device"
"""What a thread of the run sees of its device, now and then."""
LAST = ("finished", "failed")


class EventLog:
    """The events of one run, open for appending; by the run itself, and by a thread that samples its device."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._unit, self._ended = 0, False
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._synced = time.monotonic()
        self._whole = True
        if os.fstat(self._file).st_size and read_regular(path, 1, end=True) != b"\n":
            os.write(self._file, b"\n")  # a line that a crash of the machine cut off stays a line of its own

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
        # After a line that a full disk cut short, a new one begins: that one is lost, this one is not.
        data = line if self._whole else b"\n" + line
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
        """Close the file. Every line is synced already, or is a step that the system will write in its own time."""
        with self._lock:
            self._ended = True  # its number may be another file's soon
            os.close(self._file)


class EventTail:
    """Reads an events file from where the last read ended.

    Attributes:
        restarted: the last read began at the file's start again, since it is shorter, another one, or gone: what was read before
            counts no more.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.restarted = path, False
        self._at, self._head = 0, b""

    def read(self) -> Iterable[dict[str, Any]]:
        """The whole lines since the last read; a torn last line waits for its rest."""
        self.restarted = False
        try:
            size = self.path.stat().st_size if self.path.is_file() else 0
            if size == self._at:
                return ()
            head = b""
            if size:
                with self.path.open("rb") as file:
                    head = file.read(HEAD)
        except OSError:  # such as a disk that is away for a moment
            return ()
        if size < self._at or not head.startswith(self._head):
            self._at, self.restarted = 0, True
        if not self._at:
            self._head = head
        return self._added()

    def _added(self) -> Iterator[dict[str, Any]]:
        try:
            with self.path.open("rb") as file:
                while file.seek(self._at) is not None and (content := file.read(MOST)):
                    end = content.rfind(b"\n") + 1
                    if not end and len(content) < MOST:
                        return
                    self._at += end or MOST  # no event is as long as that
                    yield from parse_lines(content[:end])
        except OSError:
            return


def all_events(path: Path) -> Iterator[dict[str, Any]]:
    """Every line that is as it was written; others, such as the last one of a machine that lost power, are left out."""
    try:
        content = read_regular(path)
    except FileNotFoundError:
        return
    yield from parse_lines(content)


def latest_events(path: Path, most: int) -> list[dict[str, Any]]:
    """What a run did last, by the end of a file of any size and without samples of its device; nothing where it cannot be read."""
    try:
        content = read_regular(path, LATEST_BYTES, end=True)
    except OSError:
        return []
    return [event for event in parse_lines(content) if event.get("event") != SAMPLE][-most:]


def parse_lines(content: bytes) -> list[dict[str, Any]]:
    """The events of those lines that are as they were written."""
    whole = []
    for line in content.split(b"\n"):
        text, _, found = line.rpartition(SUM)
        if found == b'%08x"}' % zlib.crc32(b"}", zlib.crc32(text)):
            whole.append(text)
    if not whole:
        return []
    try:
        events = json.loads(b"[%b}]" % b"},".join(whole))  # at once, which takes half the time
    except (ValueError, RecursionError):  # a line with a sum that fits, and yet no JSON, was made by hand
        events = []
        for text in whole:
            with suppress(ValueError, RecursionError):
                events.append(json.loads(text + b"}"))
    return [event for event in events if isinstance(event, dict)]


def counted_events(path: Path) -> list[dict[str, Any]]:
    """The lines that count: what was lost and done again is left out."""
    counted: list[dict[str, Any]] = []
    for event in all_events(path):
        if event.get("event") == "resumed":
            counted = [
                e for e in counted if e["unit"] < event["unit"] or e["event"] in ("warning", "failed", "resumed")
            ]
        counted.append(event)
    return counted
