"""The process on a node: performs a block of jobs with a local executor, whose events become the jobs' answers.

Started as `python -m fairtune.execution.executors.remote.node SUBMISSION BLOCK`, with the submission's folder. So a run on a node
is performed by the same worker, with the same threads and the same guards, as on the user's own machine, and has the same bits.
SIGTERM, SIGINT and SIGUSR1 have the workers save their states; then the process ends with `LEFT`, and whoever starts it again
for the same block goes on from there. Jobs that have had their last answer are not done again.
"""

from __future__ import annotations

import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairtune.core.console import make_messages_printable, say
from fairtune.core.errors import FairtuneError, LedgerError, Stopped
from fairtune.core.files import read_json
from fairtune.execution.executors.base import ENDED, LOST, NOTE, PROGRESS, REFUSED, STARTED, WAITING, JobEvent
from fairtune.execution.executors.local import LocalExecutor
from fairtune.execution.executors.remote.job_files import (
    STOPPED,
    JobAnswer,
    Submission,
    read_answer,
    read_submission,
    write_answer,
)
from fairtune.ledger.seals import FINISHED, run_state
from fairtune.settings.execution import Execution
from fairtune.settings.values import AUTO

DONE, LEFT, UNUSABLE = 0, 75, 2
"""Exit codes: every job of the block has its last answer; it was stopped before that; it could not be read."""
ANSWER_SECONDS, SELDOM_SECONDS, FEW_BLOCKS = 1.0, 10.0, 100
"""Between two answers about a run's progress, in a submission of few blocks and at most in one of many: each is a file that is
written aside, renamed, found and read, in one folder for all nodes."""
SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGUSR1") if hasattr(signal, name))


def main() -> int:
    """What is started on a node."""
    make_messages_printable()
    try:
        block = int(sys.argv[2])
        submission = read_submission(Path(sys.argv[1]), block)
    except LedgerError as error:
        say(f"fairtune: {error}")
        refuse_block(Path(sys.argv[1]), int(sys.argv[2]), str(error))
        return UNUSABLE
    with stopping_signals():
        return DONE if perform_block(submission, block) else LEFT


def perform_block(submission: Submission, block: int, label: str | None = None) -> bool:
    """Perform what is left of a block; within `stopping_signals`. Whether every job of it now has its last answer.

    Args:
        label: of its workers, in whose name they write logs and signs; None is the machine's name and the block.
    """
    try:
        left = _unanswered(submission, block)
        if left:
            _perform(submission, left, label or f"{socket.gethostname().split('.')[0]}-{block}")
        return True
    except Stopped:
        return False
    except FairtuneError as error:  # such as a GPU that is not there, or the last one gone
        say(f"fairtune: {error}")
        left = _unanswered(submission, block)
        if any(read_answer(submission.folder, number) is not None for number in left):
            return False  # it had begun, so it may go on on another machine
        for number in left:
            write_answer(submission.folder, number, JobAnswer(REFUSED, {"reason": str(error)}))
        return True


def refuse_block(folder: Path, block: int, reason: str) -> None:
    """Answer for a block of a submission that cannot be used here; where nothing can be read or written, the log must do."""
    try:
        for number in (read_json(folder / "submission.json") or {})["blocks"][block]:
            answer = read_answer(folder, number)
            if answer is None or not answer.is_last:
                write_answer(folder, number, JobAnswer(REFUSED, {"reason": reason}))
    except (OSError, KeyError, IndexError, TypeError) as error:
        say(f"fairtune: {folder}: nobody can be told so here ({error})")


@contextmanager
def stopping_signals(noted: Callable[[int], None] = lambda _: None) -> Iterator[None]:
    """Let the first signal stop the work, with states saved; those after it are taken no notice of, lest they cut that short."""

    def stop(number: int, _: object) -> None:
        for other in SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        noted(number)
        raise Stopped

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _unanswered(submission: Submission, block: int) -> list[int]:
    """Jobs without a last answer; of those whose run is finished, only the answer is missing."""
    left = []
    for number in submission.blocks[block]:
        answer = read_answer(submission.folder, number)
        if answer is not None and answer.is_last:
            continue
        job = submission.jobs[number]
        state = run_state(job.run, job.plan["key"])
        if state.status == FINISHED:
            write_answer(submission.folder, number, JobAnswer(ENDED, {"result": state.result}))
        else:
            left.append(number)
    return left


def _perform(submission: Submission, numbers: list[int], label: str) -> None:
    jobs = {submission.jobs[number].name: number for number in numbers}
    executor = LocalExecutor(_on_a_node(submission.execution), submission.home / "logs", _plain(label))
    answered: dict[str, float] = {}
    every = ANSWER_SECONDS * max(1.0, min(SELDOM_SECONDS, len(submission.blocks) / FEW_BLOCKS))
    try:
        executor.submit([submission.jobs[number] for number in numbers])
        for event in executor.events():
            now = time.monotonic()
            if event.type in (NOTE, WAITING, LOST):
                say(f"fairtune: {event.values['text']}")
                continue
            if event.is_last or event.type == STARTED or now - answered.get(event.job.name, 0.0) >= every:
                answered[event.job.name] = now
                _answer(submission.folder, jobs[event.job.name], event)
            if event.is_last:
                del jobs[event.job.name]
    finally:
        executor.stop()
        for name, number in jobs.items():
            if name in answered:
                write_answer(submission.folder, number, JobAnswer(STOPPED))


def _answer(folder: Path, number: int, event: JobEvent) -> None:
    if event.type in (STARTED, PROGRESS, ENDED, REFUSED):
        values = {name: value for name, value in event.values.items() if name not in ("type", "run")}
        write_answer(folder, number, JobAnswer(event.type, values))


def _on_a_node(execution: Execution) -> Execution:
    """One run at a time on each device that this process was given, unless the user wants more: so that times compare."""
    return execution.model_copy(update={"workers": 1}) if execution.workers == AUTO else execution


def _plain(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", label)[:60]


if __name__ == "__main__":
    sys.exit(main())
