"""A worker process: takes jobs as JSON lines on its standard input, performs them one after the other, reports what happens.

Started as `python -m fairtune.execution.executors.worker DEVICE THREADS NAME LOGS`; 0 threads leaves that to torch. It lives for
the whole study, so imports, the task's data and its tokens are paid once. What libraries print goes to standard error, never
among the messages.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtune.core.console import make_messages_printable, own_pipes
from fairtune.core.errors import FairtuneError, Stopped
from fairtune.execution.executors.heartbeat import Heartbeat
from fairtune.execution.executors.performer import perform_job
from fairtune.study.run_spec import RunSpec


class _Stop:
    """Set by a signal or by the end of standard input; looked at between any two pieces of work."""

    def __init__(self) -> None:
        self.requested = False

    def request(self, *_: object) -> None:
        self.requested = True

    def check(self) -> None:
        if self.requested:
            raise Stopped


def main() -> None:
    device, threads, name, logs = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    inbox, outbox = own_pipes()
    make_messages_printable()  # they go to the worker's log, which people read in a terminal
    messages = os.fdopen(outbox, "w", encoding="utf-8")
    stop = _Stop()
    signal.signal(signal.SIGTERM, stop.request)
    signal.signal(signal.SIGINT, stop.request)

    def send(message_type: str, **values: Any) -> None:
        try:
            messages.write(json.dumps({"type": message_type, **values}) + "\n")
            messages.flush()
        except BrokenPipeError:
            stop.request()  # no one reads them any more

    jobs: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(inbox, jobs, stop), daemon=True).start()
    send("ready")
    with Heartbeat(logs, name, device, threads or 1) as heartbeat:
        if threads:
            _use_threads(threads)
        while (line := _next(jobs, stop)) is not None:
            job = RunSpec.model_validate(json.loads(line))
            send("started", run=job.name)
            heartbeat.note(job.name, {})

            def report(values: dict[str, Any], run: str = job.name) -> None:
                send("progress", run=run, **values)
                heartbeat.note(run, values)

            try:
                result = perform_job(job, device, stop.check, report)
                send("ended", run=job.name, result=result, leaving=is_spoilt(result))
                if is_spoilt(result):
                    os._exit(0)  # another worker takes this one's place
            except Stopped:
                send("stopped", run=job.name)
                return
            except FairtuneError as error:
                send("refused", run=job.name, reason=str(error))
            heartbeat.note(None, {})


def is_spoilt(result: Mapping[str, Any]) -> bool:
    """Whether a run failed with a CUDA error, after which every further one fails in the same process."""
    return result["status"] == "failed" and "CUDA error" in str(result.get("reason"))


def _use_threads(threads: int) -> None:
    """Have torch use so many, whatever libraries made of the environment: the last bits of a sum depend on it."""
    import torch

    torch.set_num_threads(threads)
    with contextlib.suppress(RuntimeError):  # once they have worked it is too late, and does not matter
        torch.set_num_interop_threads(1)


def _read(inbox: int, jobs: queue.Queue[str | None], stop: _Stop) -> None:
    with os.fdopen(inbox, encoding="utf-8") as lines:
        for line in lines:
            jobs.put(line)
    jobs.put(None)
    stop.request()  # the parent is gone, or has no more work


def _next(jobs: queue.Queue[str | None], stop: _Stop) -> str | None:
    while not stop.requested:
        with contextlib.suppress(queue.Empty):
            return jobs.get(timeout=0.2)
    return None


if __name__ == "__main__":
    main()
