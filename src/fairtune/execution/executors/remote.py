"""The executor of every cluster: runs go out as files, their results are read from the ledger, and what is lost is sent again.

To add a kind of cluster, write a class with the methods of `Cluster` (see `slurm.py`) and a factory in `base.py`. All that it has
to bring about is that, on some machine that sees the study's folder, `fairtune worker SPEC...` runs for each block, with the cores
and GPUs that a block needs (see `node.py`). That can be started again for the same block at any time: what is done is not done
again, and of two at once one waits for the other.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fairtune.core.console import say
from fairtune.core.errors import FairtuneError
from fairtune.execution.executors.base import ENDED, NOTE, PROGRESS, REFUSED, STARTED, JobEvent
from fairtune.execution.executors.node import DONE, LEFT, OTHER_VERSION, UNSEEN
from fairtune.execution.executors.specs import Block, write_blocks
from fairtune.execution.failures import record_failure
from fairtune.ledger.folders import is_under_way
from fairtune.ledger.seals import DAMAGED, FAILED, FINISHED, run_state
from fairtune.ledger.worker_signs import read_signs
from fairtune.settings.execution import Execution
from fairtune.study.run_spec import RunSpec

LOOK_SECONDS, STATE_SECONDS = 1.0, 5.0
"""Between two looks at the ledger, and two questions to the cluster."""
GONE_SECONDS = 15.0
"""How long the results of a block that left the cluster may take to show on a shared disk."""
NOTE_SECONDS = 20.0
"""Between two notes about what blocks wait for."""
ATTEMPTS = 3
"""How often in a row a block is sent again without progress."""
WAITING, RUNNING, GONE, OVER = "waiting", "running", "gone", "over"
LEAVE, CANCEL = "leave", "cancel"


@dataclass(frozen=True)
class BlockState:
    """Where a block is on a cluster.

    Args:
        state: `waiting`; `running`; `gone`, when it left the cluster; `over`, when it left and there is no use in sending it again.
        reason: what it waits for ("for free nodes"), or why it left ("its node failed"), in words; may be empty.
    """

    state: str
    reason: str = ""


class Cluster(Protocol):
    """One kind of cluster, for one study."""

    @property
    def name(self) -> str:
        """As in messages: "Slurm"."""

    def group(self, jobs: Sequence[RunSpec]) -> list[list[RunSpec]]:
        """Runs in blocks, each of which is performed on one machine."""

    def queue(self, blocks: Sequence[Block]) -> str:
        """Have blocks of one submission performed; called again for those that are gone. Returns what was done, in words.

        Raises:
            FairtuneError: the cluster is not there, or refuses.
        """

    def left(self) -> list[Block]:
        """Blocks that an earlier process left on the cluster and that are still there."""

    def states(self, blocks: Collection[Block]) -> Mapping[Block, BlockState]:
        """Where blocks are; a cluster that does not answer for a moment is no reason to take blocks for gone."""

    def cancel(self, blocks: Collection[Block]) -> None:
        """Take blocks out of the cluster; those under way are asked to save their state first. Returns when they are gone."""

    def ways(self) -> str:
        """How to look after blocks that are left on the cluster; empty where they cannot be left."""

    def close(self) -> None:
        """Nothing more will be asked."""


def exit_state(code: int, block: Block) -> BlockState:
    """What the exit code of `fairtune worker` says of a block that has left its cluster."""
    runs = block.folder.parents[2]
    if code == UNSEEN:
        return BlockState(OVER, f"a node cannot see {runs}; use a --runs folder on a disk that all nodes share")
    if code == OTHER_VERSION:
        return BlockState(OVER, "a node has another version of fairtune; install the same one on every node")
    if code in (DONE, LEFT):
        return BlockState(GONE, "" if code == DONE else "it was stopped there")
    return BlockState(GONE, f"it ended with exit code {code}; {block.log} says why")


def ask_what_to_do(cluster: str) -> str:
    """What Ctrl-C means for jobs on a cluster; where there is no one to ask, and after another Ctrl-C, they are left."""
    if sys.stdin and sys.stdin.isatty() and sys.stderr.isatty():
        say(f"\nLeave the jobs on {cluster}, where they go on, or cancel them? [leave/cancel] ", end="")
        with contextlib.suppress(KeyboardInterrupt):
            return CANCEL if sys.stdin.readline().strip().lower() in ("c", CANCEL) else LEAVE
    return LEAVE


class RemoteExecutor:
    """Performs jobs on a cluster; see `Executor`.

    Args:
        home: the study's folder, on a disk that the nodes share.
        ask: what a Ctrl-C is to mean for jobs on the cluster.
    """

    def __init__(
        self, cluster: Cluster, execution: Execution, home: Path, ask: Callable[[str], str] = ask_what_to_do
    ) -> None:
        self._cluster, self._execution, self._home, self._ask = cluster, execution, home, ask
        self._given: list[RunSpec] = []
        self._open: dict[str, tuple[RunSpec, Block]] = {}
        self._seen: dict[str, tuple[Any, ...]] = {}  # how far each run was
        self._states: dict[Block, str] = {}
        self._gone: dict[Block, float] = {}
        self._attempts: dict[Block, tuple[int, object]] = {}
        self._noted, self._noted_at = "", -NOTE_SECONDS

    def submit(self, jobs: Sequence[RunSpec]) -> None:
        self._given.extend(jobs)

    def events(self) -> Iterator[JobEvent]:
        yield from self._hand_in()
        asked = time.monotonic() - STATE_SECONDS
        while self._open:
            yield from self._look_at_ledger()
            if self._open and time.monotonic() - asked >= STATE_SECONDS:
                asked = time.monotonic()
                yield from self._look_at_cluster()
            if self._open:
                time.sleep(LOOK_SECONDS)

    def cancel_waiting(self) -> None:
        under_way = {block for name, (_, block) in self._open.items() if name in self._seen}
        waiting = {block for _, block in self._open.values()} - under_way
        self._cluster.cancel(waiting)
        self._open = {name: found for name, found in self._open.items() if found[1] not in waiting}

    def interrupted(self, by_user: bool) -> None:
        """Leave the jobs on the cluster, or cancel them, as the user wishes; without a user they stay. Called before `stop`."""
        ways = self._cluster.ways()
        if not self._open:
            return
        if not ways or (by_user and self._ask(self._cluster.name) == CANCEL):
            say(f"fairtune: cancelling the jobs on {self._cluster.name}; runs under way save their state ...")
            self._cluster.cancel({block for _, block in self._open.values()})
        else:
            say(f"fairtune: the jobs stay on {self._cluster.name}. {ways}")

    def stop(self) -> None:
        self._cluster.close()

    def _hand_in(self) -> Iterator[JobEvent]:
        """Find runs that are on the cluster already, and queue the others."""
        wanted = {job.name: job for job in self._given}
        for block in self._cluster.left():
            for job in block.jobs:
                given = wanted.get(job.name)
                same = given is not None and given.key == job.key
                if same and not job.run.result.exists():
                    self._open[job.name] = job, block
        if self._open:
            count = f"{len(self._open)} run{'s are' if len(self._open) > 1 else ' is'}"
            yield self._note(f"{count} on {self._cluster.name} already, from an earlier command; following.")
        new = [job for job in self._given if job.name not in self._open]
        if new:
            for job in new:
                job.run.result.unlink(missing_ok=True)  # of a failure, which its events tell of: what comes now is new
            blocks = write_blocks(self._home, self._cluster.group(new), self._execution)
            try:
                text = self._cluster.queue(blocks)
            except FairtuneError:
                shutil.rmtree(blocks[0].folder, ignore_errors=True)
                raise
            self._open |= {job.name: (job, block) for block in blocks for job in block.jobs}
            yield self._note(text)

    def _look_at_ledger(self) -> Iterator[JobEvent]:
        """Take note of runs that have ended, and of how far others are by their workers' signs of life."""
        signs = {sign.run: sign for sign in read_signs(self._home)}
        for name, (job, block) in list(self._open.items()):
            sign, ended = signs.get(name), None
            if self._states.get(block) != WAITING and job.run.result.exists():
                state = run_state(job.run, job.key)
                ended = state.result if state.status in (FINISHED, FAILED) else None
            if (sign or ended) and name not in self._seen:
                self._seen[name] = ()
                yield JobEvent(job, STARTED)
            if ended is not None:
                yield self._end(job, ENDED, {"result": ended})
            elif sign is not None and (now := (sign.phase, sign.done)) != self._seen[name]:
                self._seen[name] = now
                stage = {"phase": "stage", "what": sign.phase or "preparing", "done": sign.done or 0, "of": sign.of}
                train = {"phase": "train", "step": sign.done, "steps": sign.of}
                yield JobEvent(job, PROGRESS, train if sign.phase == "train" else stage)

    def _look_at_cluster(self) -> Iterator[JobEvent]:
        counts, again = dict[str, int](), list[Block]()
        blocks = list(dict.fromkeys(block for _, block in self._open.values()))
        states = self._cluster.states(blocks)
        for block in blocks:
            state = states.get(block, BlockState(GONE))
            if state.state in (WAITING, RUNNING):
                self._gone.pop(block, None)
                if (state.state, self._states.get(block)) == (WAITING, RUNNING):
                    runs = ", ".join(job.name for job in self._left_of(block))
                    yield self._note(f"{self._cluster.name}: put back into the queue: {runs}; what was done is saved.")
                words = f"{state.state} {state.reason}".strip()
                counts[words] = counts.get(words, 0) + 1
            elif time.monotonic() - self._gone.setdefault(block, time.monotonic()) >= GONE_SECONDS:
                del self._gone[block]
                yield from self._take_back(block, state, again)
            self._states[block] = state.state
        summary = ", ".join(f"{count} {words}" for words, count in sorted(counts.items()))
        if counts and summary != self._noted and time.monotonic() - self._noted_at >= NOTE_SECONDS:
            self._noted, self._noted_at = summary, time.monotonic()
            yield self._note(f"{self._cluster.name}: {summary}.")
        for folder in dict.fromkeys(block.folder for block in again):
            lost = [block for block in again if block.folder == folder]
            try:
                self._cluster.queue(lost)
            except FairtuneError as error:
                for job in (job for block in lost for job in self._left_of(block)):
                    yield self._end(job, REFUSED, {"reason": str(error)})

    def _take_back(self, block: Block, state: BlockState, again: list[Block]) -> Iterator[JobEvent]:
        """A block left the cluster before its runs ended, most often since its node died."""
        yield from self._look_at_ledger()  # a node may have died just after a run's end
        for job in self._left_of(block):
            if (found := run_state(job.run, job.key)).status == DAMAGED:  # nothing is written over it
                yield self._end(job, REFUSED, {"reason": f"its folder is damaged: {found.problem}"})
        left = self._left_of(block)
        if not left or any(is_under_way(job.run) for job in left):  # a node that the cluster lost may be at work still
            return
        if state.state == OVER:
            for job in left:
                yield self._end(job, REFUSED, {"reason": state.reason})
            return
        progress = [(job.name, self._seen.get(job.name)) for job in left]
        count, before = self._attempts.get(block, (0, None))
        count = count + 1 if before in (None, progress) else 1
        self._attempts[block] = count, progress
        reason = state.reason or "it is no longer in the queue"
        if count > ATTEMPTS:
            for job in left:
                lost = f"its job on {self._cluster.name} was lost {count} times ({reason})"
                yield self._end(job, ENDED, {"result": record_failure(job, lost, "killed")})
            return
        again.append(block)
        runs = ", ".join(job.name for job in left)
        yield self._note(f"lost on {self._cluster.name}: {runs}: {reason}; sent again ({count} of {ATTEMPTS}).")

    def _left_of(self, block: Block) -> list[RunSpec]:
        return [job for job, own in self._open.values() if own is block]

    def _end(self, job: RunSpec, event_type: str, values: dict[str, Any]) -> JobEvent:
        del self._open[job.name]
        return JobEvent(job, event_type, values)

    def _note(self, text: str) -> JobEvent:
        return JobEvent(self._given[0], NOTE, {"text": text})
