"""The processes of a study: the one that runs it and all that it started. What others do on a GPU is told apart from theirs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import psutil

HEAD = "FAIRTUNE_STUDY_PID"
"""The environment variable in which a worker finds the process that runs its study."""
OWN_SPACE = Path("/proc/self/ns/pid")
FIRST_SPACE = "pid:[4026531836]"
"""What Linux calls the machine's own space of process numbers; a container has another, unless it shares the machine's."""


def head_of_family() -> int:
    """The process that runs the study which this one works for: itself, or one from which it descends."""
    named = os.environ.get(HEAD, "")
    if named.isdecimal():
        try:
            if any(process.pid == int(named) for process in psutil.Process().parents()):
                return int(named)
        except psutil.Error:  # one of them has just ended
            return os.getpid()
    return os.getpid()


def foreign_processes(pids: Iterable[int]) -> int | None:
    """How many of these processes, of which a driver told, are not of this study; None where numbers cannot be compared."""
    if not sees_all_processes():
        return None
    head = head_of_family()
    return sum(not is_of_family(pid, head) and is_there(pid) for pid in set(pids))


def is_of_family(pid: int, head: int) -> bool:
    """Whether a process is the head of a family or descends from it."""
    if pid in (head, os.getpid()):
        return True
    try:
        return any(process.pid == head for process in psutil.Process(pid).parents())
    except psutil.Error:
        return False


def sees_all_processes() -> bool:
    """Whether process numbers here are those of the machine, as the GPU's driver counts them; in most containers they are not."""
    try:
        return str(OWN_SPACE.readlink()) == FIRST_SPACE
    except OSError:
        return os.name == "nt" or not Path("/proc/self").exists()  # other systems have but one space


def is_there(pid: int) -> bool:
    """Whether a process has not ended; those of other users count, even where the system hides them."""
    if os.name == "nt":
        return psutil.pid_exists(pid)  # there, signal 0 is Ctrl-C
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
