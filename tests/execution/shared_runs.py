"""Runs that two processes share, many in the same two, so that processes are started once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from fairtune.execution.job import Job
from tests.warm import WarmProcess

SIZE, SECONDS = 2, 240


def perform_together(jobs: Sequence[Job], folder: Path, shards: bool = False) -> None:
    """Perform jobs one after the other, each in both processes."""
    store = tempfile.mkdtemp(dir=folder)
    ranks = [WarmProcess(target=_perform, args=(rank, str(store), list(jobs), shards)) for rank in range(SIZE)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(SECONDS)
    assert [process.exitcode for process in ranks] == [0] * SIZE


def _perform(rank: int, folder: str, jobs: list[Job], shards: bool) -> None:
    from fairtune.execution.rank import join_group
    from fairtune.execution.run import perform_alone

    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(SIZE), "LOCAL_WORLD_SIZE": str(SIZE)}
    ranks = join_group(Path(folder) / "store", "cpu", shards)
    for job in jobs:
        if ranks.leads:
            job.run.begin(job.plan)
        ranks.agreed(False)
        perform_alone(job, "cpu", lambda: None, lambda _: None, ranks)
        ranks.agreed(False)
