"""The executor of every cluster: jobs go out as files, answers come back as files, and what is lost on the way is sent again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.console import say
from fairtune.core.errors import FairtuneError, LedgerError
from fairtune.execution.executors.base import ENDED, NOTE, PROGRESS, REFUSED, STARTED, JobEvent
from fairtune.execution.executors.remote.cluster import CANCELLED, RUNNING, WAITING, BlockKey, Cluster
from fairtune.execution.executors.remote.interruption import CANCEL, ask_what_to_do
from fairtune.execution.executors.remote.job_files import (
    STOPPED,
    AnswerTail,
    JobAnswer,
    Submission,
    read_answer,
    read_submission,
    write_submission,
)
from fairtune.execution.job import Job, failed_result, record_failure
from fairtune.ledger.seals import FINISHED, run_state
from fairtune.settings.execution import Execution

ANSWER_SECONDS, STATE_SECONDS = 1.0, 5.0
"""Between two looks at answers, and two questions to the cluster."""
GONE_SECONDS = 15.0
"""How long the answers of a block that left the cluster may take to show on a shared disk."""
NOTE_SECONDS = 20.0
"""Between two notes about who waits for what."""
ATTEMPTS = 3
"""How often in a row a block is sent again of which nothing more came."""


@dataclass
class _OpenJob:
    job: Job
    submission: Submission
    number: int
    started: bool = False
    last: JobAnswer | None = None

    @property
    def block(self) -> BlockKey:
        return self.submission.folder.name, self.submission.block_of(self.number)


class RemoteExecutor:
    """Performs jobs on a cluster; see `Executor`.

    Args:
        home: the study's folder, on a disk that the nodes share.
        ask: what a Ctrl-C is to mean for jobs on the cluster.
    """

    def __init__(
        self,
        cluster: Cluster,
        execution: Execution,
        home: Path,
        ask: Callable[[str], str] = ask_what_to_do,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster, self._execution, self._home, self._ask, self._clock = cluster, execution, home, ask, clock
        self._given: list[Job] = []
        self._open: dict[str, _OpenJob] = {}
        self._tails: dict[Path, AnswerTail] = {}
        self._gone: dict[BlockKey, float] = {}
        self._attempts: dict[BlockKey, tuple[int, object]] = {}
        self._before: dict[BlockKey, str] = {}
        self._noted, self._noted_at = "", -NOTE_SECONDS

    def submit(self, jobs: Sequence[Job]) -> None:
        self._given.extend(jobs)

    def events(self) -> Iterator[JobEvent]:
        yield from self._hand_in()
        asked = self._clock() - STATE_SECONDS
        while self._open:
            yield from self._new_answers()
            if self._open and self._clock() - asked >= STATE_SECONDS:
                asked = self._clock()
                yield from self._look_at_cluster()
            if self._open:
                time.sleep(ANSWER_SECONDS)

    def cancel_waiting(self) -> None:
        under_way = {one.block for one in self._open.values() if one.started}
        waiting = {one.block for one in self._open.values()} - under_way
        self._cluster.cancel(waiting)
        self._open = {name: one for name, one in self._open.items() if one.block not in waiting}

    def interrupted(self, by_user: bool) -> None:
        """Leave the jobs on the cluster, or cancel them, as the user wishes; without a user they stay. Called before `stop`."""
        ways = self._cluster.ways()
        if not self._open:
            return
        wish = self._ask(self._cluster.name) if by_user and ways else "" if ways else CANCEL
        if wish == CANCEL:
            say(f"fairtune: cancelling the jobs on {self._cluster.name}; runs under way save their state ...")
            self._cluster.cancel({one.block for one in self._open.values()})
        else:
            say(f"fairtune: the jobs stay on {self._cluster.name}. {ways}")

    def stop(self) -> None:
        self._cluster.close()

    # -- handing in ----------------------------------------------------------------------------------------------------

    def _hand_in(self) -> Iterator[JobEvent]:
        """Find jobs that are on the cluster already, and queue the others."""
        self._attach()
        new = [job for job in self._given if job.name not in self._open]
        if self._open:
            count = f"{len(self._open)} run{'s are' if len(self._open) > 1 else ' is'}"
            yield self._note(
                f"{count} on {self._cluster.name} already, from an earlier command, and followed from here on."
            )
        if new:
            self._cluster.check(new)
            submission = write_submission(self._home, self._cluster.group(new), self._execution)
            text = self._cluster.queue(submission, range(len(submission.blocks)))
            for number, job in submission.jobs.items():
                self._open[job.name] = _OpenJob(job, submission, number)
            yield self._note(text)

    def _attach(self) -> None:
        wanted = {job.name: job for job in self._given}
        for folder in self._cluster.queued():
            try:
                submission = read_submission(folder)
            except LedgerError:  # of an earlier version; its jobs are refused on the nodes, and its files may be gone
                continue
            states = self._cluster.states([(folder.name, block) for block in range(len(submission.blocks))])
            for number, job in submission.jobs.items():
                found, answer = wanted.get(job.name), read_answer(folder, number)
                key = folder.name, submission.block_of(number)
                there = key in states and states[key].state in (WAITING, RUNNING)
                open_there = there and (answer is None or not answer.is_last)
                if found is not None and found.plan["key"] == job.plan["key"] and open_there:
                    self._open[job.name] = _OpenJob(found, submission, number)

    # -- following -----------------------------------------------------------------------------------------------------

    def _new_answers(self) -> Iterator[JobEvent]:
        by_folder: dict[Path, dict[int, _OpenJob]] = {}
        for one in self._open.values():
            by_folder.setdefault(one.submission.folder, {})[one.number] = one
        for folder, jobs in by_folder.items():
            tail = self._tails.setdefault(folder, AnswerTail(folder))
            for number, answer in tail.read(list(jobs)).items():
                yield from self._take(jobs[number], answer)

    def _take(self, one: _OpenJob, answer: JobAnswer) -> Iterator[JobEvent]:
        one.last = answer
        if answer.type == STOPPED:  # whoever goes on says so
            return
        if not one.started:
            one.started = True
            yield JobEvent(one.job, STARTED)
        if answer.type == PROGRESS:
            yield JobEvent(one.job, PROGRESS, answer.values)
        elif answer.is_last:
            yield self._end(one, answer.type, answer.values)

    def _end(self, one: _OpenJob, event_type: str, values: dict[str, Any]) -> JobEvent:
        del self._open[one.job.name]
        return JobEvent(one.job, event_type, values)

    def _look_at_cluster(self) -> Iterator[JobEvent]:
        blocks = list(dict.fromkeys(one.block for one in self._open.values()))
        states = self._cluster.states(blocks)
        missing, counts = dict[BlockKey, str](), dict[str, int]()
        for key in blocks:
            state = states.get(key)
            if state is not None and state.state in (WAITING, RUNNING):
                self._gone.pop(key, None)
                if (state.state, self._before.get(key)) == (WAITING, RUNNING):
                    runs = ", ".join(one.job.name for one in self._of(key))
                    yield self._note(f"{self._cluster.name}: put back into the queue: {runs}; what was done is saved.")
                self._before[key] = state.state
                words = state.state if state.state == RUNNING else f"waiting {state.reason}".strip()
                counts[words] = counts.get(words, 0) + 1
            elif self._clock() - self._gone.setdefault(key, self._clock()) >= GONE_SECONDS:
                missing[key] = "" if state is None else state.reason
                if state is not None and state.state == CANCELLED:
                    cancelled = "its job was cancelled; run the same command again to go on with it"
                    yield from self._give_up(key, missing.pop(key) or cancelled)
        summary = ", ".join(f"{count} {words}" for words, count in sorted(counts.items()))
        if counts and summary != self._noted and self._clock() - self._noted_at >= NOTE_SECONDS:
            self._noted, self._noted_at = summary, self._clock()
            yield self._note(f"{self._cluster.name}: {summary}.")
        yield from self._send_again(missing)

    def _give_up(self, block: BlockKey, reason: str) -> Iterator[JobEvent]:
        for one in self._of(block):
            yield self._end(one, REFUSED, {"reason": reason})

    def _of(self, block: BlockKey) -> list[_OpenJob]:
        return [one for one in self._open.values() if one.block == block]

    def _send_again(self, missing: dict[BlockKey, str]) -> Iterator[JobEvent]:
        """Blocks that left the cluster without their last answers: on a node that died, most often."""
        again: dict[Path, tuple[Submission, list[int]]] = {}
        for key, why in missing.items():
            del self._gone[key]
            reason = why or "it is no longer in the queue"
            for one in self._of(key):  # the node may have died between a run's end and its answer
                state = run_state(one.job.run, one.job.plan["key"])
                if state.status == FINISHED:
                    yield self._end(one, ENDED, {"result": state.result})
            left = self._of(key)
            if not left:
                continue
            progress = [(one.number, one.last) for one in left]
            count, before = self._attempts.get(key, (0, None))
            count = count + 1 if before in (None, progress) else 1
            self._attempts[key] = count, progress
            if count > ATTEMPTS:
                yield from self._fail(left, f"its job on {self._cluster.name} was lost {count} times ({reason})")
                continue
            submission = left[0].submission
            again.setdefault(submission.folder, (submission, []))[1].append(key[1])
            runs = ", ".join(one.job.name for one in left)
            yield self._note(f"lost on {self._cluster.name}: {runs}: {reason}; sent again ({count} of {ATTEMPTS}).")
        for submission, blocks in again.values():
            try:
                self._cluster.queue(submission, blocks)
            except FairtuneError as error:
                for block in blocks:
                    yield from self._give_up((submission.folder.name, block), str(error))

    def _fail(self, jobs: Sequence[_OpenJob], reason: str) -> Iterator[JobEvent]:
        for one in jobs:
            result = failed_result(one.job, reason, "killed")
            record_failure(one.job, result)
            yield self._end(one, ENDED, {"result": result})

    def _note(self, text: str) -> JobEvent:
        return JobEvent(self._given[0], NOTE, {"text": text})
