"""The local executor: warm worker processes, one per GPU or per core, fed with jobs in the plan's order."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from fairtune.core.errors import LedgerError, Stopped
from fairtune.execution.executors.base import ENDED, JobEvent
from fairtune.execution.executors.slots import Slot, find_devices, find_slots, worker_environment
from fairtune.execution.failures import record_failure
from fairtune.ledger.worker_signs import remove_sign, remove_signs
from fairtune.settings.execution import Execution
from fairtune.study.run_spec import RunSpec

WORKER = (sys.executable, "-m", "fairtune.execution.executors.worker")
STOP_SECONDS = 600.0
"""How long a worker may take to save its state before it is killed."""
END_SECONDS = 30.0
"""How long one may take to end that has nothing to save."""
JOIN_SECONDS = 1.0
"""How long to wait for the reader of a worker that has ended: something it started, and left behind, may hold its pipe."""


@dataclass
class _Worker:
    slot: Slot
    process: subprocess.Popen[bytes]
    inbox: queue.SimpleQueue[WorkerLine]
    job: RunSpec | None = None
    reader: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.reader = threading.Thread(target=self._read, name=f"fairtune-{self.slot.name}", daemon=True)
        self.reader.start()

    def _read(self) -> None:
        """Pass on its lines, and None once it has ended."""
        assert self.process.stdout is not None
        try:
            with self.process.stdout as lines:
                for line in lines:
                    if line.endswith(b"\n") and line.strip():  # the end of a worker may cut one off
                        self.inbox.put((self, line))
        finally:
            self.inbox.put((self, None))

    def give(self, job: RunSpec) -> None:
        assert self.process.stdin is not None
        self.job = job
        with contextlib.suppress(BrokenPipeError):  # it died; the end of its output says so
            self.process.stdin.write(json.dumps(job.as_json()).encode() + b"\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """Kill it, unless it has ended, with what it started, such as tokenising processes."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):  # one that hangs in the kernel is left behind
                self.process.wait(timeout=END_SECONDS)
        self.reader.join(JOIN_SECONDS)


WorkerLine = tuple[_Worker, bytes | None]
"""A line of a worker's, or None for its end."""


def make_local_executor(execution: Execution, home: Path) -> LocalExecutor:
    """The executor of a study; what the workers' libraries print goes to the study's folder.

    Raises:
        DeviceError: devices that the study asks for are not there.
    """
    find_devices(execution.devices)
    return LocalExecutor(execution, home / "logs")


class LocalExecutor:
    """Performs jobs on this machine, in worker processes; see `Executor`.

    Args:
        logs: folder for what the workers' libraries print.
        label: what the names of its workers begin with, where executors on several machines share that folder.
    """

    def __init__(self, execution: Execution, logs: Path, label: str = "") -> None:
        self._execution, self._logs, self._prefix = execution, logs, f"{label}-" if label else ""
        self._waiting: deque[RunSpec] = deque()
        self._workers: list[_Worker] = []
        # Unlike a `Queue`, it is whole after an interruption.
        self._inbox: queue.SimpleQueue[WorkerLine] = queue.SimpleQueue()
        self._memory_kills = _memory_kills()

    def submit(self, jobs: Sequence[RunSpec]) -> None:
        self._waiting.extend(jobs)

    def events(self) -> Iterator[JobEvent]:
        remove_signs(self._logs, self._prefix)  # of an earlier process of this study that was killed
        for slot in find_slots(self._execution, self._waiting):
            if self._waiting:
                self._start(replace(slot, name=f"{self._prefix}{slot.name}"))
        while any(worker.job for worker in self._workers) or (self._waiting and self._workers):
            worker, line = self._inbox.get()
            if line is not None:
                yield from self._take(worker, json.loads(line))
            else:
                yield from self._replace(worker)

    def cancel_waiting(self) -> None:
        self._waiting.clear()

    def stop(self) -> None:
        """End every worker: its input ends, so it saves the state of its run. On a second Ctrl-C, or too late, it is killed."""
        busy = any(worker.job for worker in self._workers)
        deadline = time.monotonic() + (STOP_SECONDS if busy else END_SECONDS)
        try:
            for worker in self._workers:
                with contextlib.suppress(BrokenPipeError):  # of a job that the worker no longer takes
                    assert worker.process.stdin is not None
                    worker.process.stdin.close()
            # Their readers go on meanwhile, or a full pipe would hold them.
            while time.monotonic() < deadline and any(worker.process.poll() is None for worker in self._workers):
                time.sleep(0.05)
        except (KeyboardInterrupt, Stopped):
            pass
        finally:
            for worker in self._workers:
                worker.end()
            self._workers.clear()
            remove_signs(self._logs, self._prefix)

    def _start(self, slot: Slot) -> None:
        """Start a worker, with the next job."""
        with self._log(slot) as log:
            process = subprocess.Popen(
                [*WORKER, slot.device, str(slot.threads or 0), slot.name, str(self._logs)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=worker_environment(slot.device, slot.threads),
                start_new_session=True,  # Ctrl-C reaches this process alone, which then asks the workers to stop
            )
        worker = _Worker(slot, process, self._inbox)
        self._workers.append(worker)
        worker.give(self._waiting.popleft())

    def _log(self, slot: Slot) -> IO[bytes]:
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
            return (self._logs / f"worker-{slot.name}.log").open("ab")
        except OSError as error:
            raise LedgerError(
                f"{self._logs}: the workers' log cannot be written ({error.strerror}); fix that or use another --runs."
            ) from None

    def _take(self, worker: _Worker, message: dict[str, Any]) -> Iterator[JobEvent]:
        """What a worker has said; one that is done gets the next job."""
        if (job := worker.job) is None:
            return
        if message["type"] == "stopped":
            raise Stopped  # by a signal that was not ours: a cluster that ends a job asks all its processes
        event = JobEvent(job, message["type"], message)
        if event.is_last:
            worker.job = None
        yield event
        if event.is_last and self._waiting and not message.get("leaving"):
            worker.give(self._waiting.popleft())

    def _replace(self, worker: _Worker) -> Iterator[JobEvent]:
        """A worker has ended. If it had a job, that has failed; another worker takes its place, unless memory lacks room."""
        self._workers.remove(worker)
        remove_sign(self._logs, worker.slot.name)
        code, crowded = worker.process.wait(), False
        if worker.job is not None:
            before, self._memory_kills = self._memory_kills, _memory_kills()
            starved = code == -signal.SIGKILL and self._memory_kills > before
            others = sum(other.job is not None for other in self._workers)
            yield JobEvent(worker.job, ENDED, {"result": _record_death(worker.job, code, starved, others)})
            crowded = starved and others > 0
        if self._waiting and not crowded:
            self._start(worker.slot)


def _record_death(job: RunSpec, code: int, starved: bool, others: int) -> dict[str, Any]:
    """Record a run whose worker ended under it.

    Args:
        starved: the system has counted a process that it ended for want of memory.
        others: how many other runs were under way.
    """
    if code == -signal.SIGKILL:
        fewer = "run fewer side by side (`execution: {workers: 1}`), or " if others else ""
        cause = "the machine ran out of memory" if starved else "most often because the machine ran out of memory"
        reason = f"the worker was killed (signal 9): {cause}; {fewer}take a smaller batch_size with a larger accumulate"
    elif code < 0:
        reason = f"the worker was ended by signal {-code} ({signal.Signals(-code).name})"
    else:
        reason = f"the worker ended with exit code {code}; its log in the study's folder says why"
    return record_failure(job, reason, "killed")


def _memory_kills() -> int:
    """How many processes the system has ended because memory ran out, since it started; 0 where it does not count them."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text(encoding="utf-8").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
