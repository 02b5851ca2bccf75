"""What one kind of cluster must do for `RemoteExecutor`: check, queue, tell states, cancel. Everything else is shared.

To add one (`executors/slurm/` is the example):

1. A class with the methods of `Cluster` below. Jobs are in files (`job_files.py`) before `queue` is called; all that it has to
   bring about is that, on some machine that sees the study's folder,
   `python -m fairtune.execution.executors.remote.node SUBMISSION BLOCK` runs (`node_command`), once for each block, with the cores
   and GPUs that a block needs. That process takes the runs' leases, performs them, writes answers and signs, and on SIGTERM or
   SIGUSR1 saves and ends with code 75. It can be started again for the same block, at any time and any number of
   times: what is done is not done again, and two at once wait for each other.
2. A factory in `executors/choice.py`.

`RemoteExecutor` writes the files, follows the answers, notices blocks that are gone from the cluster without them, resubmits
those, and turns everything into events. It asks the user what a Ctrl-C is to mean.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fairtune.execution.executors.remote.job_files import Submission
from fairtune.execution.job import Job

WAITING, RUNNING, GONE, CANCELLED = "waiting", "running", "gone", "cancelled"
BlockKey = tuple[str, int]
"""The name of a submission's folder, and the number of a block in it."""


@dataclass(frozen=True)
class BlockState:
    """Where a block is on a cluster.

    Args:
        state: `waiting`; `running`; `gone`, when it left the cluster whatever the cause; `cancelled`, when it is not to go on.
        reason: what it waits for ("for free nodes"), or why it is gone ("its node failed"), in words; may be empty.
        place: the node; may be empty.
        job: what the cluster calls it, for messages; may be empty.
    """

    state: str
    reason: str = ""
    place: str = ""
    job: str = ""


class Cluster(Protocol):
    """One kind of cluster, for one study."""

    @property
    def name(self) -> str:
        """As in messages: "Slurm"."""

    def check(self, jobs: Sequence[Job]) -> None:
        """Look for what would go wrong, before anything is queued.

        Raises:
            FairtuneError: in one sentence.
        """

    def group(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """Jobs in blocks, each of which is performed on one machine."""

    def queue(self, submission: Submission, blocks: Sequence[int]) -> str:
        """Have blocks of a submission performed, in this order as far as there is one. Called again for those that are gone.

        Returns what was done, in words for the user.
        """

    def queued(self) -> list[Path]:
        """Folders of submissions that an earlier process left on the cluster, of which blocks may still be there."""

    def states(self, blocks: Collection[BlockKey]) -> Mapping[BlockKey, BlockState]:
        """Where blocks are that this process has queued, or that are of `queued`. One cheap question for all of them.

        A cluster that does not answer for a moment is no reason to take blocks for gone.
        """

    def cancel(self, blocks: Collection[BlockKey]) -> None:
        """Take blocks out of the cluster; those under way are asked to save their state first. Returns when they are gone."""

    def ways(self) -> str:
        """How to look after jobs that are left on the cluster, and how to cancel them by hand; empty where they cannot be left."""

    def close(self) -> None:
        """Nothing more will be asked."""


def node_command(submission: Path, block: int | str, python: str = sys.executable) -> list[str]:
    """What runs on a node for a block."""
    return [python, "-m", "fairtune.execution.executors.remote.node", str(submission.resolve()), str(block)]
