"""The local executor: one warm worker process per device, fed with jobs in the plan's order."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fairtune.core.errors import LedgerError, Stopped
from fairtune.execution.executors.base import ENDED, JobEvent
from fairtune.execution.job import Job, failed_result, record_failure
from fairtune.ledger.environment import gpus
from fairtune.settings.sections import Execution

Message = dict[str, Any]
WORKER = (sys.executable, "-m", "fairtune.execution.executors.worker")
STOP_SECONDS = 600.0
"""How long a worker may take to save its state before it is killed."""
END_SECONDS = 30.0
"""How long one may take to end that has nothing to save."""


def find_devices(wanted: Sequence[str]) -> list[str]:
    """The devices to use, `auto` resolved: every GPU there is, else Apple's, else the CPU."""
    found: list[str] = []
    for device in wanted:
        if device == "auto":
            devices = [f"cuda:{gpu['index']}" for gpu in gpus()]
            apple = sys.platform == "darwin" and os.uname().machine == "arm64"
            found += devices or (["mps"] if apple else ["cpu"])
        else:
            found.append("cuda:0" if device == "cuda" else device)
    return list(dict.fromkeys(found))


@dataclass
class _Worker:
    device: str
    process: subprocess.Popen[bytes]
    job: Job | None = None
    buffer: bytes = b""

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def give(self, job: Job) -> None:
        assert self.process.stdin is not None
        self.job = job
        try:
            self.process.stdin.write(json.dumps(job.as_json()).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return  # it died; the end of its output says so

    def messages(self) -> list[Message] | None:
        """What it said since the last look; None once it has ended."""
        data = os.read(self.stdout.fileno(), 65536)
        if not data:
            return None
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        return [json.loads(line) for line in lines if line]


def make_local_executor(execution: Execution, home: Path) -> LocalExecutor:
    """The executor of a study that names its devices; what the workers' libraries print goes to the study's folder."""
    return LocalExecutor(find_devices(execution.devices), home / "logs")


class LocalExecutor:
    """Performs jobs on this machine, in worker processes; see `Executor`.

    Args:
        logs: folder for what the workers' libraries print.
    """

    def __init__(self, devices: Sequence[str], logs: Path) -> None:
        self._devices, self._logs = devices, logs
        self._waiting: deque[Job] = deque()
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()

    def submit(self, jobs: Sequence[Job]) -> None:
        self._waiting.extend(jobs)

    def events(self) -> Iterator[JobEvent]:
        for device in self._devices[: len(self._waiting)]:
            self._start(device).give(self._waiting.popleft())
        while any(worker.job for worker in self._workers):
            for key, _ in self._selector.select(timeout=1.0):
                yield from self._events_of(key.data)

    def cancel_waiting(self) -> None:
        self._waiting.clear()

    def stop(self) -> None:
        """Ask busy workers to save their state, let idle ones end, and kill what has not ended by its deadline."""
        try:
            if any(worker.job for worker in self._workers):
                self._stop_busy()
        finally:
            self._end_all()

    def _start(self, device: str) -> _Worker:
        with self._log(device) as log:
            process = subprocess.Popen(
                [*WORKER, device],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=worker_environment(device),
                start_new_session=True,  # Ctrl-C reaches this process alone, which then asks the workers to stop
            )
        worker = _Worker(device, process)
        self._workers.append(worker)
        self._selector.register(worker.stdout, selectors.EVENT_READ, worker)
        return worker

    def _log(self, device: str) -> IO[bytes]:
        try:
            self._logs.mkdir(parents=True, exist_ok=True)
            return (self._logs / f"worker-{device.replace(':', '-')}.log").open("ab")
        except OSError as error:
            raise LedgerError(
                f"{self._logs}: the workers' log cannot be written ({error.strerror}); mend that or use another --runs."
            ) from None

    def _events_of(self, worker: _Worker) -> Iterator[JobEvent]:
        """What a worker has said since the last look; one that is done gets the next job."""
        messages = worker.messages()
        if messages is None:
            yield from self._replace(worker)
            return
        for message in messages:
            job = worker.job
            if job is None:
                continue
            event = JobEvent(job, message["type"], message)
            if event.is_last:
                worker.job = None
            yield event
            if event.is_last and self._waiting:
                worker.give(self._waiting.popleft())

    def _replace(self, worker: _Worker) -> Iterator[JobEvent]:
        """A worker has ended. If it had a job, the job failed; another worker takes its place."""
        self._selector.unregister(worker.stdout)
        self._workers.remove(worker)
        code = worker.process.wait()
        job = worker.job
        if job is None:
            return
        yield JobEvent(job, ENDED, {"result": _record_death(job, code)})
        if self._waiting:
            self._start(worker.device).give(self._waiting.popleft())

    def _stop_busy(self) -> None:
        """Ask every worker to save its state and end; kill what has not by the deadline, or on a second Ctrl-C."""
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.terminate()
        try:
            self._await_end(STOP_SECONDS)
        except (KeyboardInterrupt, Stopped):
            pass
        finally:
            self._kill_all()

    def _end_all(self) -> None:
        """Let workers end that have no more work; kill what has not by the deadline."""
        for worker in self._workers:
            if worker.process.stdin:
                with contextlib.suppress(BrokenPipeError):  # of a job that the worker no longer takes
                    worker.process.stdin.close()
        try:
            self._await_end(END_SECONDS)
        finally:
            self._kill_all()
            for worker in self._workers:
                worker.stdout.close()
            self._workers.clear()
            self._selector.close()

    def _await_end(self, seconds: float) -> None:
        """Wait until every worker has ended, at most so long. What they say meanwhile is read, or a full pipe would hold them."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and any(w.process.poll() is None for w in self._workers):
            for key, _ in self._selector.select(timeout=min(left, 0.2)):
                if key.data.messages() is None:
                    self._selector.unregister(key.fileobj)
            if not self._selector.get_map():
                time.sleep(min(left, 0.05))

    def _kill_all(self) -> None:
        for worker in self._workers:
            if worker.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(worker.process.pid, signal.SIGKILL)  # with what it started, such as tokenising processes
                with contextlib.suppress(subprocess.TimeoutExpired):  # one that hangs in the kernel is left behind
                    worker.process.wait(timeout=END_SECONDS)


def _record_death(job: Job, code: int) -> dict[str, Any]:
    """Record a run whose worker ended under it."""
    if code == -signal.SIGKILL:
        reason = "the worker was killed (signal 9), most often because the machine ran out of memory; try a smaller batch_size"
    elif code < 0:
        reason = f"the worker was ended by signal {-code} ({signal.Signals(-code).name})"
    else:
        reason = f"the worker ended with exit code {code}; its log in the study's folder says why"
    result = failed_result(job, reason, "killed")
    record_failure(job, result)
    return result


def worker_environment(device: str) -> dict[str, str]:
    """A worker's environment: one device, repeatable CUDA arithmetic, and memory that is reused rather than returned."""
    environment = dict(os.environ)
    defaults = {
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "TOKENIZERS_PARALLELISM": "true",
        # glibc maps and unmaps every large tensor, so each step pays for fresh pages; keeping them saves 5-10 % of a CPU step
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "MALLOC_TOP_PAD_": str(64 << 20),
    }
    for name, value in defaults.items():
        environment.setdefault(name, value)
    if device.startswith("cuda:"):
        environment["CUDA_VISIBLE_DEVICES"] = _visible(device.removeprefix("cuda:"))
    return environment


def _visible(index: str) -> str:
    """The device's number as CUDA counts it, when only some devices are visible to this process."""
    visible = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part]
    return visible[int(index)] if int(index) < len(visible) else index
