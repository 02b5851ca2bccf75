"""A process that helps this one with much work: started as a module, ended with its input, so also when its parent is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import IO

from fairtune.core.pipes import own_pipes


def start_helper(module: str) -> subprocess.Popen[bytes]:
    """Start a module whose main part takes its pipes with `helper_pipes`; nothing of the user's own program runs in it.

    Raises:
        OSError: the system has no room for another process.
    """
    return subprocess.Popen(
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def end_helper(process: subprocess.Popen[bytes]) -> None:
    """End it, whatever it is doing, and wait until it is gone."""
    process.kill()
    process.communicate()


def helper_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """In the helper, first of all: what it is given, and what it answers. An interrupt is its parent's to decide on."""
    given, answers = own_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return os.fdopen(given, "rb"), os.fdopen(answers, "wb")
