"""Runs that two processes share, many in the same two, so that processes are started once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from fairtune.core.errors import RunFailure, Stopped
from fairtune.execution.job import Job
from tests.warm import WarmProcess

SIZE, SECONDS = 2, 300


@dataclass(frozen=True)
class Shared:
    """A job for both processes.

    Args:
        stop_at: where the second one is asked to stop, in looks of the first attempt; then the run goes on.
        fails: that it must.
    """

    job: Job
    stop_at: int | None = None
    fails: bool = False


def perform_together(jobs: Sequence[Shared], folder: Path, shards: bool = False) -> None:
    """Perform jobs one after the other, each in both processes."""
    store = tempfile.mkdtemp(dir=folder)
    ranks = [WarmProcess(target=_perform_all, args=(rank, str(store), list(jobs), shards)) for rank in range(SIZE)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(SECONDS)
    assert [process.exitcode for process in ranks] == [0] * SIZE


def _perform_all(rank: int, folder: str, jobs: list[Shared], shards: bool) -> None:
    from fairtune.execution.rank import join_group
    from fairtune.execution.run import perform_alone

    torch.set_num_threads(1)
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": SIZE, "LOCAL_WORLD_SIZE": SIZE}
    os.environ |= {name: str(value) for name, value in names.items()}
    ranks = join_group(Path(folder) / "store", "cpu", shards)
    for one in jobs:
        looks = 0

        def check_stop(at: int | None = one.stop_at) -> None:
            nonlocal looks
            looks += 1
            if looks == at and rank == 1:
                raise Stopped

        if ranks.leads:
            one.job.run.begin(one.job.plan)
        for attempt in range(1 if one.stop_at is None else 2):
            ranks.agreed(False)
            stopped = failed = False
            try:
                perform_alone(one.job, "cpu", check_stop, lambda _: None, ranks)
            except Stopped:
                stopped = True
            except RunFailure:
                failed = True
            assert stopped == (one.stop_at is not None and not attempt)
            assert failed == one.fails
        ranks.agreed(False)
