"""Jobs as files in a study's folder, for processes on other machines: what is to be done, and how far each one is.

`jobs/<n>/` is a submission: `submission.json` says by which fairtune it was made, with what settings, and which jobs make up a
block, that one machine performs one after the other; `<job>.json` is a job, both sealed; `<job>.answer.json` is what last
happened to it, written by the process that performs it; `block-<b>.log` what that process printed. Nothing here is
a result: those are in the ledger.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError
from fairtune.core.files import finite, parse_json, read_regular, read_sealed, write_atomically, write_sealed
from fairtune.core.version import __version__
from fairtune.execution.executors.base import ENDED, PROGRESS, REFUSED, STARTED
from fairtune.execution.job import Job
from fairtune.settings.execution import Execution
from fairtune.study.plan import PROTOCOL

JOBS = "jobs"
STOPPED = "stopped"
"""An answer: the run's state is saved, and somebody will go on with it."""
ANSWERS = (STARTED, PROGRESS, ENDED, REFUSED, STOPPED)
LARGEST = 4 << 20
"""Bytes of an answer; what is larger is none."""


@dataclass(frozen=True)
class JobAnswer:
    """What last happened to a job.

    Args:
        type: of a `JobEvent`, or `stopped`.
    """

    type: str
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def is_last(self) -> bool:
        return self.type in (ENDED, REFUSED)


@dataclass(frozen=True)
class Submission:
    """Jobs that were handed in together.

    Args:
        folder: `<study>/jobs/<n>`.
        blocks: numbers of jobs that one machine performs one after the other.
        jobs: by their numbers, in the order in which they are to be begun; those of one block, where only they were read.
        execution: settings for whoever performs them.
    """

    folder: Path
    blocks: tuple[tuple[int, ...], ...]
    jobs: Mapping[int, Job]
    execution: Execution

    @property
    def home(self) -> Path:
        """The study's folder."""
        return self.folder.parent.parent

    def log(self, block: int) -> Path:
        return self.folder / f"block-{block}.log"

    def block_of(self, job: int) -> int:
        return self._block_of[job]

    @cached_property
    def _block_of(self) -> dict[int, int]:
        return {job: block for block, numbers in enumerate(self.blocks) for job in numbers}


def write_submission(home: Path, blocks: Sequence[Sequence[Job]], execution: Execution) -> Submission:
    """Put jobs into files, block by block.

    Raises:
        LedgerError: they cannot be written.
    """
    # a process on a node may begin in another folder
    jobs = [replace(job, folder=str(Path(job.folder).resolve())) for block in blocks for job in block]
    numbers = iter(range(len(jobs)))
    grouped = tuple(tuple(next(numbers) for _ in block) for block in blocks)
    try:
        folder = _new_folder(home / JOBS)
        for number, job in enumerate(jobs):
            write_sealed(folder / f"{number}.json", job.as_json())
        about = {
            "fairtune": __version__,
            "protocol": PROTOCOL,
            "execution": execution.model_dump(mode="json"),
            "blocks": [list(block) for block in grouped],
            "runs": [job.name for job in jobs],
        }
        write_sealed(folder / "submission.json", about)
    except OSError as error:
        raise LedgerError(
            f"{home / JOBS}: the jobs cannot be written ({error.strerror}); mend that or use another --runs."
        ) from None
    return Submission(folder, grouped, dict(enumerate(jobs)), execution)


def read_submission(folder: Path, block: int | None = None) -> Submission:
    """What `write_submission` wrote.

    Args:
        block: read the jobs of this one alone, as a node does: with thousands, all nodes would read all of them.

    Raises:
        LedgerError: it cannot be read, is not what was written, or is that of another version of fairtune.
    """
    about = _read(folder / "submission.json")
    if (made := about.get("fairtune"), about.get("protocol")) != (__version__, PROTOCOL):
        raise LedgerError(
            f"the jobs were made by fairtune {made}, but this node has fairtune {__version__}; install the same version on "
            "every node, or use one environment on a shared disk."
        )
    try:
        blocks = tuple(tuple(int(number) for number in block) for block in about["blocks"])
        numbers = range(sum(map(len, blocks))) if block is None else blocks[block]
        jobs = {number: Job(**_read(folder / f"{number}.json")) for number in numbers}
        return Submission(folder, blocks, jobs, Execution.model_validate(about["execution"]))
    except (LookupError, TypeError, ValueError) as error:
        raise LedgerError(f"{folder}: these are no jobs of this version ({error}); run the study again.") from None


def write_answer(folder: Path, job: int, answer: JobAnswer) -> None:
    """Say what happened to a job; a lost `progress` costs nothing, others are put on the disk."""
    content = json.dumps(finite({"type": answer.type, "values": answer.values})).encode()
    write_atomically(folder / f"{job}.answer.json", content, durable=answer.type != PROGRESS)


def read_answer(folder: Path, job: int) -> JobAnswer | None:
    """What last happened to a job; None of one that nobody has begun."""
    try:
        found = parse_json(read_regular(folder / f"{job}.answer.json", LARGEST))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("type") not in ANSWERS or not isinstance(found.get("values"), dict):
        return None
    return JobAnswer(found["type"], found["values"])


class AnswerTail:
    """The answers of a submission that changed since the last look: it costs a listing, and a question per job with an answer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[int, tuple[int, int]] = {}

    def read(self, jobs: Sequence[int]) -> Mapping[int, JobAnswer]:
        found: dict[int, JobAnswer] = {}
        try:
            there = set(os.listdir(self._folder))  # noqa: PTH208 - has an NFS client ask the server for the names of today
        except OSError:
            return found
        for job in jobs:
            if f"{job}.answer.json" not in there:
                continue
            try:
                stat = (self._folder / f"{job}.answer.json").stat()
            except OSError:
                continue
            look = stat.st_mtime_ns, stat.st_ino
            if self._seen.get(job) != look and (answer := read_answer(self._folder, job)) is not None:
                self._seen[job] = look
                found[job] = answer
        return found


def _new_folder(jobs: Path) -> Path:
    jobs.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(path.name) for path in jobs.iterdir() if path.name.isdecimal()), default=0)
    while True:
        try:
            (jobs / str(number)).mkdir()
            return jobs / str(number)
        except FileExistsError:  # another machine was quicker
            number += 1


def _read(file: Path) -> dict[str, Any]:
    try:
        return read_sealed(file)
    except OSError as error:
        raise LedgerError(
            f"{file} cannot be read here ({error.strerror}); the runs folder must be on a disk that all nodes share."
        ) from None
    except ValueError as error:
        raise LedgerError(f"{file} {error}; run the study again.") from None
