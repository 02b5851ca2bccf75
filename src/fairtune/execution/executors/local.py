"""The local executor: warm worker processes, one per GPU or per core, fed with jobs in the plan's order."""

from __future__ import annotations

import contextlib
import errno
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
from fairtune.core.gpus import nvml_held
from fairtune.core.machine import memory_kills
from fairtune.execution.executors.base import ENDED, LOST, NOTE, WAITING, JobEvent
from fairtune.execution.executors.free_gpus import FreeGpus, waiting_notes
from fairtune.execution.executors.heartbeat import Heartbeat
from fairtune.execution.executors.lost_devices import LostDevices
from fairtune.execution.executors.slots import Slot, find_slots, leftover_notes, require_devices, worker_environment
from fairtune.execution.job import Job, failed_result, record_failure
from fairtune.settings.execution import Execution

Message = dict[str, Any]
WORKER = (sys.executable, "-m", "fairtune.execution.executors.worker")
STOP_SECONDS = 600.0
"""How long a worker may take to save its state before it is killed."""
END_SECONDS = 30.0
"""How long one may take to end that has nothing to save."""
WAKE_SECONDS = 0.2
"""How long the main thread waits at a time: on Windows it hears of Ctrl-C only in between."""
KILLED = -9
"""The exit code of a process that SIGKILL ended, of which not every system has the name."""
JOIN_SECONDS = 1.0
"""How long to wait for the reader of a worker that has ended: something it started, and left behind, may hold its pipe."""


@dataclass
class _Worker:
    slot: Slot
    process: subprocess.Popen[bytes]
    inbox: queue.SimpleQueue[WorkerLine]
    job: Job | None = None
    reader: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.reader = threading.Thread(target=self._read, name=f"fairtune-{self.slot.name}", daemon=True)

    def _read(self) -> None:
        """Pass on its lines, and None once it has ended; in a thread, since Windows cannot wait for several pipes at once."""
        assert self.process.stdout is not None
        try:
            with self.process.stdout as lines:
                for line in lines:
                    if line.endswith(b"\n") and line.strip():  # the end of a worker may cut one off
                        self.inbox.put((self, line))
        finally:
            self.inbox.put((self, None))

    def give(self, job: Job) -> None:
        assert self.process.stdin is not None
        self.job = job
        try:
            self.process.stdin.write(json.dumps(job.as_json()).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            if not _is_broken_pipe(error):
                raise
            return  # it died; the end of its output says so

    def close_input(self) -> None:
        """Give it no more jobs; it saves the state of the one that it has, and ends."""
        if self.process.stdin:
            try:
                self.process.stdin.close()
            except OSError as error:
                if not _is_broken_pipe(error):  # else of a job that the worker no longer takes
                    raise

    def ask_to_end(self) -> None:
        """Have it save its state and end. `terminate` is a signal that it handles, but on Windows kills it at once."""
        if os.name == "nt":
            self.close_input()
        else:
            self.process.terminate()

    def kill(self) -> None:
        """Kill it with what it started, such as tokenising processes; those end by themselves where there are no process groups."""
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()


WorkerLine = tuple[_Worker, bytes | None]
"""A line of a worker's, or None for its end."""


def _is_broken_pipe(error: OSError) -> bool:
    """Whether nobody is there to read; Windows calls that an invalid argument."""
    return isinstance(error, BrokenPipeError) or (os.name == "nt" and error.errno == errno.EINVAL)


def make_local_executor(execution: Execution, home: Path) -> LocalExecutor:
    """The executor of a study; what the workers' libraries print goes to the study's folder.

    Raises:
        DeviceError: devices that the study asks for are not there.
    """
    require_devices(execution)
    return LocalExecutor(execution, home / "logs")


class LocalExecutor:
    """Performs jobs on this machine, in worker processes; see `Executor`.

    Args:
        logs: folder for what the workers' libraries print.
        label: what the names of its workers begin with, where executors on several machines share that folder.
    """

    def __init__(self, execution: Execution, logs: Path, label: str = "") -> None:
        self._execution, self._logs, self._label = execution, logs, label
        self._waiting: deque[Job] = deque()
        self._workers: list[_Worker] = []
        # Unlike a `Queue`, it is whole after an interruption.
        self._inbox: queue.SimpleQueue[WorkerLine] = queue.SimpleQueue()
        self._memory_kills = memory_kills()
        self._heartbeat = Heartbeat(logs, label=label)
        self._places: list[Slot | _Worker] = []  # that have no job, in the order in which they get one
        self._free, self._said = FreeGpus(execution.wait_for_free), ""
        self._losses = LostDevices()

    def submit(self, jobs: Sequence[Job]) -> None:
        self._waiting.extend(jobs)

    def events(self) -> Iterator[JobEvent]:
        for slot in find_slots(self._execution, self._waiting):
            self._places.append(replace(slot, name=f"{self._label}-{slot.name}") if self._label else slot)
        yield from self._notes()
        yield from self._hand_out()
        while any(worker.job for worker in self._workers) or (self._waiting and self._has_places()):
            try:
                worker, line = self._inbox.get(timeout=WAKE_SECONDS)
            except queue.Empty:
                self._end_hanging()
                yield from self._hand_out()
                continue
            yield from self._replace(worker) if line is None else self._events_of(worker, line)
            yield from self._hand_out()
        self._losses.require_some_left(len(self._waiting))

    def cancel_waiting(self) -> None:
        self._waiting.clear()

    def stop(self) -> None:
        """Ask busy workers to save their state, let idle ones end, and kill what has not ended by its deadline."""
        try:
            if any(worker.job for worker in self._workers):
                self._stop_busy()
        finally:
            try:
                self._end_all()
            finally:
                self._heartbeat.stop()

    def _start(self, slot: Slot) -> _Worker:
        with self._log(slot) as log:
            process = subprocess.Popen(
                [*WORKER, slot.device, *([] if slot.threads is None else [str(slot.threads)])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=worker_environment(slot.device, slot.threads, slot.gpus or None),
                # Ctrl-C reaches this process alone, which then asks the workers to stop; the second is Windows' way
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        worker = _Worker(slot, process, self._inbox)
        self._losses.watch(slot)
        self._workers.append(worker)
        self._heartbeat.add(slot, process.pid)
        worker.reader.start()
        return worker

    def _log(self, slot: Slot) -> IO[bytes]:
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
            return (self._logs / f"worker-{slot.name}.log").open("ab")
        except OSError as error:
            raise LedgerError(
                f"{self._logs}: the workers' log cannot be written ({error.strerror}); mend that or use another --runs."
            ) from None

    def _notes(self) -> Iterator[JobEvent]:
        """What is to be said before the first job begins."""
        slots = [place for place in self._places if isinstance(place, Slot)]
        notes = waiting_notes(slots) if self._execution.wait_for_free else []
        for text in [*leftover_notes(self._execution), *notes]:
            yield JobEvent(self._waiting[0], NOTE, {"text": text})

    def _hand_out(self) -> Iterator[JobEvent]:
        """Give jobs to places that have none, and whose GPUs are free if the study waits for that; say what the next waits for."""
        if not (self._waiting and self._places and self._free.is_due()):
            return
        obstacles: list[str] = []
        with nvml_held():
            for place in list(self._places):
                if not self._waiting:
                    break
                slot = place if isinstance(place, Slot) else place.slot
                if (obstacle := self._free.obstacle(slot, self._waiting[0])) is not None:
                    obstacles.append(obstacle)
                    continue
                self._places.remove(place)
                (self._start(place) if isinstance(place, Slot) else place).give(self._waiting.popleft())
        if not (self._waiting and obstacles):
            self._said = ""
            return
        self._free.look_later()
        text = f"waiting for a free GPU: {'; '.join(dict.fromkeys(obstacles))}"
        if text != self._said:
            self._said = text
            yield JobEvent(self._waiting[0], WAITING, {"text": text})

    def _events_of(self, worker: _Worker, line: bytes) -> Iterator[JobEvent]:
        """What a worker has said; one that is done can take the next job."""
        message: Message = json.loads(line)
        job = worker.job
        if job is None:
            return
        if message["type"] == LOST:
            yield self._lose(worker, job, str(message.get("reason")))
            return
        if self._label and message["type"] == "stopped":
            raise Stopped  # a cluster that ends a job asks all its processes
        event = JobEvent(job, message["type"], message)
        if event.is_last:
            worker.job = None
        self._heartbeat.note(worker.slot, None if event.is_last else job.name, message)
        yield event
        if event.is_last and not message.get("leaving"):  # else its end makes room for another
            self._return(worker)

    def _replace(self, worker: _Worker) -> Iterator[JobEvent]:
        """A worker has ended. If it had a job, the job failed, unless its GPU did; another worker can take its place, unless memory
        has no room for it."""
        self._workers.remove(worker)
        self._heartbeat.remove(worker.slot)
        worker.reader.join()
        code = worker.process.wait()
        if worker in self._places:
            self._places.remove(worker)
        job = worker.job
        if job is None:
            self._return(worker.slot)
            return
        if (fault := self._losses.find_fault(worker.slot)) is not None:
            yield self._lose(worker, job, fault)
            return
        before, self._memory_kills = self._memory_kills, memory_kills()
        starved = code == KILLED and self._memory_kills > before
        beside = sum(other.job is not None for other in self._workers)
        yield JobEvent(job, ENDED, {"result": _record_death(job, code, starved, beside)})
        if not (starved and beside):
            self._return(worker.slot)

    def _has_places(self) -> bool:
        """Whether a job can still begin somewhere, now or once a worker that leaves has ended."""
        return bool(self._places) or any(not self._losses.has(worker.slot) for worker in self._workers)

    def _end_hanging(self) -> None:
        """Kill workers whose GPU is gone and that have not noticed: a program can wait for such a GPU for ever."""
        for worker in self._workers if self._losses.is_due() else ():
            if worker.job is not None and self._losses.is_gone(worker.slot) and worker.process.poll() is None:
                worker.kill()

    def _return(self, place: Slot | _Worker) -> None:
        """A place can take a job, unless its GPU has failed."""
        if self._losses.has(place if isinstance(place, Slot) else place.slot):
            return
        self._places.append(place)
        self._free.look_at_once()

    def _lose(self, worker: _Worker, job: Job, reason: str) -> JobEvent:
        """A GPU has failed: whoever works on it is given nothing more, and its job is the first that others take."""
        worker.job = None
        self._heartbeat.note(worker.slot, None, {})
        self._waiting.appendleft(job)
        title = self._losses.add(worker.slot, reason)
        self._places = [
            place for place in self._places if not self._losses.has(place if isinstance(place, Slot) else place.slot)
        ]
        busy = (other for other in self._workers if other.job is not None)
        others = bool(self._places) or any(not self._losses.has(other.slot) for other in busy)
        then = "goes on elsewhere, from its last checkpoint" if others else "is left at its last checkpoint"
        text = f"{title} has failed ({reason}) and is not used any more; {job.name} {then}"
        return JobEvent(job, LOST, {"text": text})

    def _stop_busy(self) -> None:
        """Ask every worker to save its state and end; kill what has not by the deadline, or on a second Ctrl-C."""
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.ask_to_end()
        try:
            self._await_end(STOP_SECONDS)
        except (KeyboardInterrupt, Stopped):
            pass
        finally:
            self._kill_all()

    def _end_all(self) -> None:
        """Let workers end that have no more work; kill what has not by the deadline."""
        for worker in self._workers:
            worker.close_input()
        try:
            self._await_end(END_SECONDS)
        finally:
            self._kill_all()
            for worker in self._workers:
                if worker.reader.is_alive():  # else it has ended, or Ctrl-C came before it began
                    worker.reader.join(JOIN_SECONDS)
            self._workers.clear()

    def _await_end(self, seconds: float) -> None:
        """Wait until every worker has ended, at most so long. Their readers go on meanwhile, or a full pipe would hold them."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and any(w.process.poll() is None for w in self._workers):
            time.sleep(min(left, 0.05))  # which Ctrl-C ends on every system, unlike waiting for a process

    def _kill_all(self) -> None:
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):  # one that hangs in the kernel is left behind
                    worker.process.wait(timeout=END_SECONDS)


def _record_death(job: Job, code: int, starved: bool, beside: int) -> dict[str, Any]:
    """Record a run whose worker ended under it.

    Args:
        starved: the system has counted a process that it ended for want of memory.
        beside: how many other runs were under way.
    """
    if code == KILLED:
        fewer = "run fewer side by side (`execution: {workers: 1}`), or " if beside else ""
        smaller = "take a smaller batch_size with a larger accumulate"
        if starved:
            others = f" with {beside} other{'s' if beside > 1 else ''} at work" if beside else ""
            reason = f"the machine ran out of memory{others}, so the system ended the worker; {fewer}{smaller}"
        else:
            seen = "the worker was killed (signal 9), most often because the machine ran out of memory"
            reason = f"{seen}; then {fewer}{smaller}"
    elif code < 0:
        reason = f"the worker was ended by signal {-code} ({signal.Signals(-code).name})"
    else:
        reason = f"the worker ended with exit code {code}; its log in the study's folder says why"
    result = failed_result(job, reason, "killed")
    record_failure(job, result)
    return result
