"""The loop of `fairtune watch`: it ends with the study, draws on a terminal, and elsewhere prints only what is new."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.monitor.terminal_views import made_view

from fairtune.core.console import Console
from fairtune.core.errors import LedgerError
from fairtune.monitor import watch_loop
from fairtune.monitor.study_view import StudyView, VerdictView
from fairtune.monitor.watch_loop import Seen, has_ended, show_until_ended

ENDED = made_view(state="finished")
SETTLED = replace(ENDED, verdict=VerdictView("focal is better than baseline."))
OTHER_SCREEN, FIRST_SCREEN, SHOW_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only sleeping moves."""
    now = [100.0]
    monkeypatch.setattr(watch_loop.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(watch_loop.time, "monotonic", lambda: now[0])
    return now


def looks(views: Sequence[Seen | BaseException]) -> Callable[[], Seen]:
    left = iter(views)

    def look() -> Seen:
        seen = next(left)
        if isinstance(seen, BaseException):
            raise seen
        return seen

    return look


def plain(views: Sequence[Seen | BaseException], every: float = 2.0) -> str:
    out = io.StringIO()
    show_until_ended(looks(views), lambda: SETTLED, Console(file=out, width=100), every)
    return out.getvalue()


def drawn(views: Sequence[Seen | BaseException]) -> str:
    """What is sent to a terminal of 80 columns and 24 lines."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as terminal:
        console = Console(file=terminal, width=80, height=24, force_terminal=True, _environ={"TERM": "xterm"})
        with suppress(KeyboardInterrupt, LedgerError):
            show_until_ended(looks(views), lambda: SETTLED, console, 2.0)
        os.set_blocking(master, False)
        sent = b""
        with suppress(BlockingIOError):
            while piece := os.read(master, 65536):
                sent += piece
    os.close(master)
    return sent.decode().replace("\r\n", "\n")


def moved(step: int) -> StudyView:
    first, *others = made_view().runs
    return made_view(runs=(replace(first, step=step), *others))


def test_elsewhere_a_frame_is_printed_when_something_changed_and_not_too_often() -> None:
    same = [made_view(left=float(n)) for n in range(60)]
    assert plain([*same, ENDED]).count("movie-reviews-demo:") == 2, "estimates alone are nothing new"
    shown = plain([moved(120 + n) for n in range(60)] + [ENDED])
    assert shown.count("movie-reviews-demo: running") == 4, "every 30 seconds of 120"
    assert len(re.findall("^as of ", shown, re.MULTILINE)) == 4
    assert "\x1b" not in shown
    assert "focal is better than baseline." in shown.rpartition("as of ")[2], "the last frame has the verdict"


def test_a_terminal_is_drawn_on_its_other_screen_and_the_last_frame_stays() -> None:
    sent = drawn([moved(121), moved(122), ENDED])
    live, last = sent.split(FIRST_SCREEN)
    assert live.startswith(OTHER_SCREEN)
    assert live.index("121/400") < live.index("122/400")
    assert "Ctrl-C leaves" in live
    assert "every run has ended" in last
    assert "focal is better than baseline." in last, "it waits for the verdict"
    assert "Ctrl-C" not in last


@pytest.mark.parametrize("error", [KeyboardInterrupt(), LedgerError("the study is gone")], ids=["Ctrl-C", "gone"])
def test_the_terminal_is_left_as_it_was(error: BaseException) -> None:
    sent = drawn([moved(121), error])
    assert sent.index(OTHER_SCREEN) < sent.index(FIRST_SCREEN)
    assert SHOW_CURSOR in sent[sent.index("121/400") :]
    assert not sent.partition(FIRST_SCREEN)[2].replace(SHOW_CURSOR, "").strip(), "nothing is left behind"


def test_being_ended_leaves_the_terminal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(watch_loop.time, "sleep", lambda _: signal.raise_signal(signal.SIGTERM))
    assert FIRST_SCREEN in drawn([moved(121), moved(122)])
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_file_is_no_terminal_though_colours_are_forced() -> None:
    out = io.StringIO()
    show_until_ended(looks([ENDED]), lambda: SETTLED, Console(file=out, width=100, force_terminal=True), 2.0)
    assert OTHER_SCREEN not in out.getvalue()


def test_several_studies_are_watched_until_all_have_ended() -> None:
    assert not has_ended([ENDED, made_view()])
    assert has_ended([ENDED, ENDED])
    assert plain([[ENDED, made_view()], [ENDED, ENDED]]).startswith("study ")


@pytest.mark.parametrize("state", ["planned", "running", "stopped", "unreadable"])
def test_a_study_that_may_go_on_is_watched_on(state: str) -> None:
    assert not has_ended(made_view(state=state))
