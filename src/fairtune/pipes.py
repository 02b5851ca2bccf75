"""Standard input and output, kept from the libraries that a process uses: none of them reads or writes what is meant for it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def own_pipes() -> tuple[int, int]:
    """Standard input and output under numbers that nobody else knows. Called before anything reads or prints.

    What a library then reads is empty, so that a question it asks cannot be answered by a message; what it prints goes to
    standard error, never among the messages.
    """
    given, told = os.dup(0), os.dup(1)
    _empty(0)
    os.dup2(2, 1)
    return given, told


@contextmanager
def without_input() -> Iterator[None]:
    """Nothing to read for a while, neither in the file nor of what was read ahead; then standard input goes on where it was.

    For commands, not for the library: other threads of a user's process may be reading.
    """
    reader = sys.stdin
    try:
        kept = os.dup(0)
    except OSError:  # there is none
        yield
        return
    sys.stdin = io.StringIO()
    _empty(0)
    try:
        yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        sys.stdin = reader


def _empty(place: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, place)
    os.close(nothing)
