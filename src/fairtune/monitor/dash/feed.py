"""What open pages are told: the ledger is read once for all of them, and each is sent what has changed since it last heard.

Nothing is read while nobody looks. How often it is read goes by what that costs, so that the runs keep the processor.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from anyio import CapacityLimiter, to_thread

from fairtune.core.errors import LedgerError
from fairtune.core.files import finite
from fairtune.monitor.dash.report_files import reports_of
from fairtune.monitor.study_builder import StudyBuilder
from fairtune.monitor.study_view import StudyView

EVERY, LONGEST = 1.0, 10.0
"""Seconds between two looks at the ledger, at least and at most."""
SHARE = 0.005
"""Of one core, at most, that looking takes."""
BEAT = 15.0
"""Seconds after which a page is told that the line still stands."""
MOST_LISTENERS = 64
Parts = dict[str, str]
"""Top-level parts of a view, each as JSON."""


class Listener:
    """One open page: what it has not been sent. A slow one gets the newest of each part, not all of them in turn."""

    def __init__(self) -> None:
        self._waiting: Parts = {}
        self._news, self._open = asyncio.Event(), True

    def tell(self, parts: Mapping[str, str]) -> None:
        self._waiting.update(parts)
        self._news.set()

    def close(self) -> None:
        """Say nothing more."""
        self._open = False
        self._news.set()

    async def messages(self) -> AsyncIterator[str]:
        """Server-sent events, for as long as somebody reads them."""
        while self._open:
            try:
                await asyncio.wait_for(self._news.wait(), BEAT)
            except TimeoutError:
                yield "event: beat\ndata: {}\n\n"
                continue
            self._news.clear()
            told, self._waiting = self._waiting, {}
            if not told:
                continue
            yield f"event: parts\ndata: {{{', '.join(f'{json.dumps(name)}: {text}' for name, text in told.items())}}}\n\n"


class Feed:
    """Reads for every page that is open.

    Args:
        clock: processor time of a look, by which the next one is timed.
    """

    def __init__(self, builder: StudyBuilder, clock: Callable[[], float] = time.thread_time) -> None:
        self._builder, self._clock = builder, clock
        self._one = CapacityLimiter(1)  # who reads the ledger does so alone
        self._listeners: dict[str, set[Listener]] = {}
        self._sent: dict[str, Parts] = {}
        self._somebody = asyncio.Event()
        self._ticked = -LONGEST
        self._wait, self._cost = EVERY, 0.0

    async def ask(self, question: Callable[[StudyBuilder], Any]) -> Any:
        """Have the builder answer, up to date and one question at a time."""
        return await to_thread.run_sync(self._answer, question, limiter=self._one)

    async def listen(self, study: str) -> AsyncIterator[str]:
        """What happens in a study."""
        listener = Listener()
        # before the look, so that the next page is counted with it
        self._listeners.setdefault(study, set()).add(listener)
        try:
            parts = await to_thread.run_sync(self._look, study, limiter=self._one)
            self._tell(study, parts)
            listener.tell(parts)
            self._somebody.set()
            async for message in listener.messages():
                yield message
        finally:
            self._listeners[study].discard(listener)
            if not self._listeners[study]:
                self._listeners.pop(study)
                self._sent.pop(study, None)
            if not self._listeners:
                self._somebody.clear()

    @property
    def is_full(self) -> bool:
        """Whether as many pages are open as there may be."""
        return sum(map(len, self._listeners.values())) >= MOST_LISTENERS

    def close(self) -> None:
        """End every line, since the server stops."""
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.close()

    async def keep_telling(self) -> None:
        """Look again and again while pages are open, for as long as the server runs."""
        while True:
            await self._somebody.wait()
            await asyncio.sleep(self._wait)
            cost = 0.0
            for study in list(self._listeners):
                self._tell(study, await to_thread.run_sync(self._look, study, limiter=self._one))
                cost += self._cost
            self._wait = min(LONGEST, max(EVERY, cost / SHARE))

    def _tell(self, study: str, now: Parts) -> None:
        """Tell every page of a study what has changed since they were last told."""
        before = self._sent.get(study, {})
        changed = {name: text for name, text in now.items() if before.get(name) != text}
        if changed and study in self._listeners:
            self._sent[study] = now
            for listener in self._listeners[study]:
                listener.tell(changed)

    def _answer(self, question: Callable[[StudyBuilder], Any]) -> Any:
        self._tick()
        return question(self._builder)

    def _look(self, study: str) -> Parts:
        began = self._clock()
        try:
            found: Parts = self._answer(lambda builder: view_parts(builder, study))
        except LedgerError as error:
            found = _unreadable(str(error))
        except Exception as error:  # a ledger may hold anything; one study must not end the news of all others
            found = _unreadable(f"it could not be shown ({type(error).__name__}: {error})")
        self._cost = self._clock() - began
        return found

    def _tick(self) -> None:
        """Bring the builder up to date, unless that was done a moment ago for another page.

        Raises:
            LedgerError: the runs folder is missing or cannot be read.
        """
        now = time.monotonic()
        if now - self._ticked >= EVERY / 2:
            self._builder.tick()
            self._ticked = now


def _unreadable(problem: str) -> Parts:
    return {"state": json.dumps("unreadable"), "problem": json.dumps(problem)}


def view_parts(builder: StudyBuilder, study: str) -> Parts:
    """All that a page of a study shows, each part as JSON."""
    view = builder.view(study)
    parts = {field.name: dump(_plain(getattr(view, field.name))) for field in fields(StudyView)}
    parts["curves"] = dump(asdict(builder.curves(study)))
    parts["reports"] = dump(reports_of(builder.runs, study))
    return parts


def studies_row(view: StudyView) -> dict[str, Any]:
    """A study in the list of all."""
    return {
        "study": view.study, "state": view.state, "about": view.about, "counts": view.counts or {}, "total": view.total,
        "left": view.left, "problem": view.problem, "arms": len(view.arms),
    }  # fmt: skip


def dump(value: Any) -> str:
    """JSON, in which what is no finite number is null."""
    return json.dumps(finite(value), separators=(",", ":"))  # in ASCII: halves of surrogate pairs have no other form


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return asdict(value)
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
