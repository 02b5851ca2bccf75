"""Watching studies until every run has ended: frames on a terminal, drawn anew; elsewhere one now and then, below each other."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

from rich.console import Group
from rich.live import Live

from fairtune.core.console import Console
from fairtune.monitor.study_view import StudyView
from fairtune.monitor.watch_view import studies_frame, study_frame

PLAIN_SECONDS = 30.0
"""The least time between two frames where there is no terminal."""
PLAIN_LINES = 24
"""The most lines of such a frame."""
RESIZE_SECONDS = 0.25
"""How soon a window that was resized is drawn anew."""
PROMPT_LINES = 2
"""What a shell needs below the last frame."""
LEAVE = "Ctrl-C leaves this view"
Seen = StudyView | Sequence[StudyView]
"""One study, or several as a table."""


def frame(seen: Seen, width: int, height: int | None = None, ending: str = "") -> Group:
    """What is seen, as lines that fit."""
    if isinstance(seen, StudyView):
        return Group(*study_frame(seen, width, height, ending))
    return Group(*studies_frame(seen, width, height, ending))


def show_until_ended(look: Callable[[], Seen], settle: Callable[[], Seen], console: Console, every: float) -> None:
    """Show what is seen until every run has ended, and at last how all of it ended.

    Args:
        look: at the studies as they are now; what it raises ends the watching.
        settle: look for the last time, and wait for the verdict.
        every: seconds between two looks.
    """
    if _draws(console):
        with _signals_leave():
            seen = _watch_live(look, settle, console, every)
        console.print(frame(seen, console.width, console.height - PROMPT_LINES))
    else:
        _watch_plain(look, console, every)
        console.print(frame(settle(), console.width))


def _draws(console: Console) -> bool:
    """Whether it is a terminal that can be drawn on; forced colours do not make a file one."""
    return console.is_terminal and not console.is_dumb_terminal and console.file.isatty()


def _watch_live(look: Callable[[], Seen], settle: Callable[[], Seen], console: Console, every: float) -> Seen:
    """On the other screen of the terminal, as editors do: nothing is left over when a window is resized, by ssh and tmux too."""
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            seen = look()
            size = _draw(live, seen)
            if has_ended(seen):
                return settle()
            until = time.monotonic() + every
            while (left := until - time.monotonic()) > 0:
                time.sleep(min(left, RESIZE_SECONDS))
                if console.size != size:
                    size = _draw(live, seen)


def _draw(live: Live, seen: Seen) -> Any:
    size = live.console.size
    views = [seen] if isinstance(seen, StudyView) else seen
    goes_on = "; the study goes on" if len(views) == 1 else "; studies go on"
    ending = f"{LEAVE}{goes_on if any(view.state == 'running' for view in views) else ''}."
    live.update(frame(seen, size.width, size.height, ending), refresh=True)
    return size


def _watch_plain(look: Callable[[], Seen], console: Console, every: float) -> None:
    """A frame when something has changed, now and then."""
    said: Any = None
    said_at = 0.0
    while not has_ended(seen := look()):
        facts, now = changing_facts(seen), time.monotonic()
        if facts != said and (said is None or now - said_at >= PLAIN_SECONDS):
            as_of = time.strftime("as of %Y-%m-%d %H:%M:%S", time.localtime())
            console.print(frame(seen, console.width, PLAIN_LINES, as_of))
            console.print()
            console.file.flush()
            said, said_at = facts, now
        time.sleep(every)


def has_ended(seen: Seen) -> bool:
    """Whether nothing more will happen."""
    return seen.state == "finished" if isinstance(seen, StudyView) else all(map(has_ended, seen))


def changing_facts(seen: Seen) -> Any:
    """What makes a new frame worth printing; estimates and the age of signs change by themselves."""
    if not isinstance(seen, StudyView):
        return [(view.study, view.state, view.counts, view.problem) for view in seen]
    runs = [(run.arm, run.seed, run.state, run.step, run.phase, run.score, run.reason) for run in seen.runs]
    return seen.state, seen.counts, seen.problem, seen.arms, runs, seen.log


@contextmanager
def _signals_leave() -> Iterator[None]:
    """Being ended, or a terminal that goes away, leaves the screen as Ctrl-C does."""
    if current_thread() is not main_thread():
        yield
        return
    before = {sign: signal.signal(sign, signal.default_int_handler) for sign in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
