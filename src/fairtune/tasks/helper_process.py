"""Processes that help this one with much work: each runs a module, reads Arrow batches and answers with others.

Such a process is started as a module, so that nothing of the user's own program runs in it, and ends with its input, so also when
its parent is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from fairtune.core.machine import available_cores
from fairtune.core.pipes import own_pipes

MOST_PROCESSES = 16
AHEAD = 3
"""Batches in work for each process, so that none waits for the next."""
Work = Callable[[Any], Any]
"""Makes a record batch of a record batch."""


def map_batches(batches: Iterable[Any], work: Work, module: str, settings: dict[str, Any], few: int) -> Iterator[Any]:
    """What the work makes of each record batch, in their order: here, and in a process for each other core.

    Args:
        module: its main part calls `serve` with the same work, made from the settings.
        few: rows that are done here before other processes would have started.
    """
    left = iter(batches)
    done = 0
    for batch in left:
        yield work(batch)
        done += len(batch)
        if done > few:
            break
    cores = min(available_cores(), MOST_PROCESSES)
    if cores == 1:
        yield from map(work, left)
        return
    helpers: list[_Helper] = []
    idle: SimpleQueue[_Helper | None] = SimpleQueue()
    for _ in range(cores - 1):
        idle.put(None)

    def answered(batch: Any) -> Any:
        helper = idle.get()
        if helper is None:
            helper = _Helper(module, settings)
            helpers.append(helper)
        try:
            answer = helper.ask(batch)
            return work(batch) if answer is None else answer
        finally:
            idle.put(helper)

    waiting: deque[Future[Any]] = deque()
    threads = ThreadPoolExecutor(cores - 1)
    try:
        for batch in left:
            if sum(not asked.done() for asked in waiting) < AHEAD * (cores - 1):
                waiting.append(threads.submit(answered, batch))
            else:  # all have enough to do
                waiting.append(Future())
                waiting[-1].set_result(work(batch))
            while waiting and (waiting[0].done() or len(waiting) > 2 * AHEAD * cores):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        threads.shutdown(cancel_futures=True)  # each ends what it is doing, since two must not use a pipe at once
        for helper in helpers:
            helper.end()


class _Helper:
    """The parent's hold on such a process; one that died, or could not be started, answers nothing."""

    def __init__(self, module: str, settings: dict[str, Any]) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: Any = None
        self._reader: Any = None
        try:
            self._process = start_helper(module)
            self._pipe.write(json.dumps(settings).encode() + b"\n")
        except OSError:  # no room for another process
            self.end()

    @property
    def _pipe(self) -> Any:
        assert self._process is not None
        return self._process.stdin

    def ask(self, batch: Any) -> Any:
        import pyarrow as pa

        if self._process is None:
            return None
        try:
            self._writer = self._writer or pa.ipc.new_stream(self._pipe, batch.schema)
            self._writer.write_batch(batch)
            self._pipe.flush()
            self._reader = self._reader or pa.ipc.open_stream(self._process.stdout)
            return self._reader.read_next_batch()
        except (OSError, StopIteration, pa.ArrowException):
            self.end()
            return None

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def serve(make: Callable[[dict[str, Any]], Work]) -> None:
    """In the helper: answer batch for batch until the input ends."""
    given, answers = (os.fdopen(pipe, mode) for pipe, mode in zip(own_pipes(), ("rb", "wb"), strict=True))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to decide on
    import pyarrow as pa

    work = make(json.loads(given.readline()))
    writer = None
    with pa.ipc.open_stream(given) as reader:
        for batch in reader:
            answer = work(batch)
            writer = writer or pa.ipc.new_stream(answers, answer.schema)
            writer.write_batch(answer)
            answers.flush()


def start_helper(module: str) -> subprocess.Popen[bytes]:
    """Start a module whose main part calls `serve`.

    Raises:
        OSError: the system has no room for another process.
    """
    return subprocess.Popen(
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
