"""Standard input and output, kept from the libraries that a process uses: none of them reads or writes what is meant for it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def own_pipes() -> tuple[int, int]:
    """Standard input and output under numbers that no library knows. Called before anything reads or prints.

    What a library then reads is empty, so that a question it asks cannot be answered by a message; what it prints goes to
    standard error, never among the messages.
    """
    inbox, outbox = os.dup(0), os.dup(1)
    _empty(0)
    os.dup2(2, 1)
    return inbox, outbox


@contextmanager
def hide_stdio() -> Iterator[None]:
    """A command's input and output for a while as if there were none; then they go on where they were.

    Libraries find nothing to read, neither in the file nor of what was read ahead, and what they print goes to standard error.
    Not for use within a user's own process, in which other threads may be reading.
    """
    reader = sys.stdin
    try:
        kept = os.dup(0), os.dup(1)
    except OSError:  # there are none
        yield
        return
    sys.stdout.flush()
    sys.stdin = io.StringIO()
    _empty(0)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        for place, file in enumerate(kept):
            os.dup2(file, place)
            os.close(file)
        sys.stdin = reader


def _empty(place: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, place)
    os.close(nothing)
