"""A task of the array, on its node: performs its block, saves before the time is up and goes back into the queue.

Started by the script as `python -m fairtune.execution.executors.slurm.task SUBMISSION`. A block stays on one kind of node
(processor and GPUs), so that the times of its arms compare: one that has begun elsewhere and finds itself on another kind goes
back into the queue, with this node excluded.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from fairtune.core.console import make_messages_printable, say
from fairtune.core.errors import LedgerError, Stopped
from fairtune.core.files import read_json, write_json
from fairtune.execution.executors.remote.job_files import Submission, read_answer, read_submission
from fairtune.execution.executors.remote.node import DONE, LEFT, UNUSABLE, perform_block, refuse_block, stopping_signals
from fairtune.execution.executors.slurm.commands import control
from fairtune.ledger.environment import cpu_name, gpus

EXCLUDE_TRIES = 10
"""Seconds in which a job that is going back into the queue may have this node excluded: Slurm kills it soon after."""


def main() -> int:
    make_messages_printable()
    folder, block = Path(sys.argv[1]), int(os.environ["SLURM_ARRAY_TASK_ID"])
    job, node = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{block}", os.environ.get("SLURMD_NODENAME", "node")
    _log(f"job {job} on {node}, start {int(os.environ.get('SLURM_RESTART_COUNT') or 0) + 1}")
    try:
        submission = read_submission(folder, block)
    except LedgerError as error:
        _log(str(error))
        refuse_block(folder, block, str(error))
        return UNUSABLE
    if (kind := _unlike(submission, block)) is not None:
        _log(f"its runs began on {kind}, so it goes back into the queue, to a node like that")
        go_elsewhere(job, node, folder / f"block-{block}.excluded.json")
        return LEFT
    signals: list[int] = []
    try:
        with stopping_signals(signals.append):
            done = perform_block(submission, block, f"{node}-{job}")
    except Stopped:
        done = False
    if not done and getattr(signal, "SIGUSR1", None) in signals:
        _log("the time is nearly up: states are saved, and the job goes back into the queue")
        control("requeue", job)
    elif not done:
        _log("stopped; states are saved")
    return DONE if done else LEFT


def kind_here() -> dict[str, Any]:
    """What makes the times of two nodes compare."""
    return {"cpu": cpu_name(), "gpus": sorted(str(gpu["name"]) for gpu in gpus())}


def _unlike(submission: Submission, block: int) -> str | None:
    """The kind of node that a block has begun on, where this is another; a block that has not begun may begin here."""
    file = submission.folder / f"block-{block}.node.json"
    begun = any(read_answer(submission.folder, number) is not None for number in submission.blocks[block])
    known, here = read_json(file), kind_here()
    if begun and known is not None and known != here:
        return ", ".join([str(known.get("cpu")), *map(str, known.get("gpus") or ())])
    write_json(file, here)
    return None


def go_elsewhere(job: str, node: str, file: Path) -> None:
    """Back into the queue, never to this node again; that can be said only of a job that waits, so after it was put back.

    Args:
        file: that has the nodes which were found unlike before.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Slurm's way of ending what it puts back
    excluded = [*((read_json(file) or {}).get("nodes") or ()), node]
    write_json(file, {"nodes": excluded})
    control("requeue", job)
    for _ in range(EXCLUDE_TRIES):
        time.sleep(1.0)
        if control("update", f"JobId={job}", f"ExcNodeList={','.join(excluded)}"):
            return


def _log(text: str) -> None:
    say(f"{time.strftime('%Y-%m-%d %H:%M:%S')} fairtune: {text}")


if __name__ == "__main__":
    sys.exit(main())
