"""What Ctrl-C means for jobs on a cluster: they need nobody who waits for them, so the user is asked."""

from __future__ import annotations

import sys

from fairtune.core.console import say

LEAVE, CANCEL = "leave", "cancel"


def ask_what_to_do(cluster: str) -> str:
    """`leave` or `cancel`; where nobody can be asked, and after another Ctrl-C, they are left."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return LEAVE
    say("")
    while True:
        question = f"Leave the jobs on {cluster}, where they go on, or cancel them? [leave/cancel] "
        say(question, end="")
        try:
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            return LEAVE
        answer = line.strip().lower()
        if not line or answer in ("", "l", LEAVE):
            return LEAVE
        if answer in ("c", CANCEL):
            return CANCEL
