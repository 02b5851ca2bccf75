"""Standard input and output, hidden from the libraries that a process uses: none of them reads or writes what is meant for it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def own_pipes() -> tuple[int, int]:
    """Standard input and output under numbers that no library knows. Call it before anything reads or prints.

    Libraries then read nothing, and what they print goes to standard error, never among the messages.
    """
    kept = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return kept


@contextmanager
def hide_stdio() -> Iterator[None]:
    """Hide a command's input and output for a while; afterwards they go on where they were.

    Not for use within a user's own process, in which other threads may be reading.
    """
    reader = sys.stdin
    sys.stdout.flush()
    try:
        kept = own_pipes()
    except OSError:  # there are none
        yield
        return
    sys.stdin = io.StringIO()  # what was read ahead is hidden too
    try:
        yield
    finally:
        sys.stdout.flush()
        for place, file in enumerate(kept):
            os.dup2(file, place)
            os.close(file)
        sys.stdin = reader
