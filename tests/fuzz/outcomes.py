"""What came of a damaged file, where it is not what is allowed."""

from __future__ import annotations

import difflib
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from fairtune.core.errors import FairtuneError

PATIENCE = 20
"""Seconds after which something hangs."""
REFUSED = object()
"""The result where there was a clean error."""


class HangError(Exception):
    """It took longer than anybody waits."""


@dataclass(frozen=True)
class Outcome:
    """A finding: what went wrong, and what had been done to the file."""

    wrong: str
    file: str
    before: bytes
    after: bytes

    def __str__(self) -> str:
        return f"{self.wrong}\n--- {self.file}: what was changed\n{difference(self.before, self.after)}"


def clean(action: Callable[[], Any]) -> Any:
    """What an action gives; REFUSED where it says in one sentence why it gives nothing. Everything else is raised.

    Raises:
        AssertionError: the error is of our own kind, but its message is none.
    """
    try:
        return action()
    except FairtuneError as error:
        message = str(error)
        assert message.strip(), "an error without words"
        assert len(message) < 5000, f"an error of {len(message):,} characters"
        return REFUSED


def judge(file: str, before: bytes, after: bytes, action: Callable[[], Any], equal: Any = REFUSED) -> Outcome | None:
    """Try an action on what was damaged.

    Args:
        equal: the result that is allowed besides a clean error; any is, if this is left out.
    """
    try:
        with patience():
            found = clean(action)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return Outcome("".join(traceback.format_exception(error)), file, before, after)
    if equal is not REFUSED and found is not REFUSED and found != equal:
        return Outcome(f"another result: {str(found)[:500]}\ninstead of: {str(equal)[:500]}", file, before, after)
    return None


@contextmanager
def patience() -> Iterator[None]:
    """An error for what hangs in Python; what hangs below it is for whoever watches this process."""

    def hangs(_number: int, _frame: FrameType | None) -> None:
        raise HangError(f"nothing came of it in {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def difference(before: bytes, after: bytes, lines: int = 20) -> str:
    """The lines that differ, as Python writes bytes; long ones are shown around the first difference."""
    found = difflib.unified_diff(_excerpt(before, after), _excerpt(after, before), "before", "after", lineterm="", n=0)
    return "\n".join(line for place, line in enumerate(found) if place < lines)


def _excerpt(content: bytes, other: bytes) -> list[str]:
    first = next(
        (i for i, (a, b) in enumerate(zip(content, other, strict=False)) if a != b), min(len(content), len(other))
    )
    start = max(0, first - 120)
    part = content[start : start + 600]
    return [f"({len(content):,} bytes, from {start:,})", *(repr(line) for line in part.split(b"\n"))]


def put(file: Path, content: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file
