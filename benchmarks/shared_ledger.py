"""Many processes on one ledger: workers that sleep instead of training, some of them killed, while others look at the study.

Each worker goes through the runs of a study in an order of its own and performs whatever nobody has: with the lease, the event
lines and the seals of real runs. It pretends to be a machine of its own, so that a dead holder is noticed by its silence alone.
A run that was left half done goes on after an even number of units, as from a checkpoint.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fairtune.core import locks
from fairtune.core.errors import LeaseLost
from fairtune.core.files import write_atomically, write_json, write_sealed
from fairtune.core.locks import Lease, LeaseWatch, require_held
from fairtune.ledger.events import EventLog, all_events, counted_events
from fairtune.ledger.folders import RunFolder, run_folder
from fairtune.ledger.scan import LedgerScan, RunRow
from fairtune.ledger.seals import FINISHED, close_run, run_state
from fairtune.ledger.studies import write_study
from growth import STUDY, LedgerSize, made_plan

SCORE = 0.5
BEAT_SECONDS, SILENCE_SECONDS, LOOK_SECONDS = 0.3, 6.0, 0.2
"""A machine with more workers than cores may leave one without a turn for seconds; silence must be longer."""


@dataclass(frozen=True)
class Load:
    """How much is done by how many.

    Args:
        units: of work in a run, each with its event.
        sleep: seconds that a unit takes.
        kills: workers that are killed with SIGKILL, each replaced at once.
        readers: processes that read the status all the while.
    """

    workers: int
    arms: int
    seeds: int
    units: int = 5
    sleep: float = 0.01
    kills: int = 0
    readers: int = 1

    @property
    def runs(self) -> int:
        return self.arms * self.seeds


@dataclass
class Outcome:
    """What is on the disk when all is over.

    Args:
        faults: whatever should not be: a run that is not finished once, an event that is lost, doubled or half.
        repeated: units that were done again, since their worker was killed before they were safe.
        reads: how often the status was read meanwhile.
    """

    seconds: float
    finished: int = 0
    events: int = 0
    repeated: int = 0
    killed: int = 0
    taken_over: int = 0
    reads: int = 0
    faults: list[str] = field(default_factory=list)


def share(runs: Path, load: Load, seed: int = 0) -> Outcome:
    """Have many processes perform a study's runs at once, and look at what they leave."""
    write_plan(runs, load)
    began, generator = time.monotonic(), random.Random(seed)
    machines, at_work, killed = iter(range(10**6)), dict[int, None](), 0
    readers = [_fork(lambda: _read_on(runs)) for _ in range(load.readers)]

    def start() -> None:
        machine = next(machines)
        at_work[_fork(lambda: work(runs, load, machine))] = None

    try:
        for _ in range(load.workers):
            start()
        while at_work:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in at_work:
                del at_work[pid]
                if status:
                    start()
            elif pid:
                readers.remove(pid)
                (runs / "misread").write_text("a process that read it failed")
            elif not pid:
                time.sleep(0.02 + 0.05 * generator.random())
                if killed < load.kills and _is_begun(runs, load):
                    os.kill(generator.choice(list(at_work)), signal.SIGKILL)
                    killed += 1
        seconds = time.monotonic() - began
    finally:
        for pid in (*at_work, *readers):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return look_at(runs, load, Outcome(seconds, killed=killed))


def _fork(act: Callable[[], None]) -> int:
    pid = os.fork()
    if not pid:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return pid


def _is_begun(runs: Path, load: Load) -> bool:
    return len(list((runs / STUDY).glob("arm-*/seed-*/events.jsonl"))) > load.runs // 20


def write_plan(runs: Path, load: Load) -> None:
    """A study of which nothing is done."""
    (runs / STUDY).mkdir(parents=True)
    write_study(runs / STUDY, made_plan(LedgerSize(load.arms, load.seeds, steps=load.units)))


def work(runs: Path, load: Load, machine: int) -> None:
    """Perform whatever is not finished and nobody has, until all is finished."""
    locks._machine = lambda: f"machine {machine}"  # type: ignore[assignment]
    locks.BEAT_SECONDS, locks.SILENCE_SECONDS = BEAT_SECONDS, SILENCE_SECONDS
    generator = random.Random(machine)
    left = [(arm, seed) for arm in range(load.arms) for seed in range(load.seeds)]
    watches: dict[tuple[int, int], LeaseWatch] = {}
    while left:
        generator.shuffle(left)
        before = len(left)
        for arm, seed in list(left):
            folder = run_folder(runs, STUDY, f"arm-{arm}", seed)
            if not folder.result.exists():
                lease = watches.setdefault((arm, seed), LeaseWatch(folder.path)).try_take()
                if lease is None:
                    continue
                try:
                    _perform(folder, f"arm-{arm}-{seed}", load, machine, lease)
                except LeaseLost:
                    continue
                lease.release(finished=folder.result.exists())
            left.remove((arm, seed))
        if len(left) == before:
            time.sleep(LOOK_SECONDS)


def _perform(folder: RunFolder, key: str, load: Load, machine: int, lease: Lease) -> None:
    if run_state(folder, key).status == FINISHED:  # by whoever had it before
        return
    begun = folder.plan.exists()
    if not begun:
        folder.write_plan({"plan": "0123456789abcdef", "study": STUDY, "key": key, "settings": {}})
    done = max((event["unit"] for event in all_events(folder.events) if event["event"] == "step"), default=0)
    write_sealed(folder.environment, {"host": f"machine {machine}"})
    done -= done % 2
    log = EventLog(folder.events)
    try:
        log.write("resumed", done + 1, machine=machine, generation=lease.number)
        for unit in range(done + 1, load.units + 1):
            lease.check()
            time.sleep(load.sleep)
            log.write("step", unit, machine=machine, step=unit)
    finally:
        log.close()
    write_json(folder.card, {"machine": machine})
    require_held(folder.path)
    scores = {"test": {"accuracy": SCORE}}
    result = {
        "status": FINISHED,
        "metric": "accuracy",
        "metrics": scores,
        "seconds": {"total": 1.0},
        "machine": machine,
    }
    close_run(folder, key, result)


def _read_on(runs: Path) -> None:
    """Read the status until this process is ended; what is finished stays so, and no look fails."""
    counts, most = runs / "reads", 0
    for number in range(10**9):
        found = Counter(row.status for row in _rows(runs))
        if found[FINISHED] < most or found["damaged"]:
            (runs / "misread").write_text(json.dumps(found))
        most = found[FINISHED]
        write_atomically(counts, str(number + 1).encode(), durable=False)
        time.sleep(0.05)


def _rows(runs: Path) -> list[RunRow]:
    scan = LedgerScan(runs, STUDY)
    scan.tick()
    return scan.rows(STUDY)


def look_at(runs: Path, load: Load, outcome: Outcome) -> Outcome:
    """Read the ledger from end to end."""
    for arm in range(load.arms):
        for seed in range(load.seeds):
            _look_at_run(run_folder(runs, STUDY, f"arm-{arm}", seed), f"arm-{arm}-{seed}", load, outcome)
    if (runs / "misread").exists():
        outcome.faults.append(f"the status was misread: {(runs / 'misread').read_text()}")
    reads = (runs / "reads").read_text() if (runs / "reads").exists() else ""
    outcome.reads = int(reads or 0)
    rows = _rows(runs)
    if len(rows) != load.runs or any(row.status != FINISHED or row.score != SCORE for row in rows):
        outcome.faults.append("the status says something else than the folders")
    return outcome


def _look_at_run(folder: RunFolder, key: str, load: Load, outcome: Outcome) -> None:
    name, state = folder.name, run_state(folder, key, thorough=True)
    if state.status != FINISHED:
        outcome.faults.append(f"{name} is {state.status}: {state.problem}")
        return
    outcome.finished += 1
    content = folder.events.read_bytes()
    events, counted = all_events(folder.events), counted_events(folder.events)
    if len(events) != content.count(b"\n") or not content.endswith(b"\n"):
        outcome.faults.append(f"{name} has a line that is not whole")
    steps = [event["unit"] for event in counted if event["event"] == "step"]
    if steps != list(range(1, load.units + 1)):
        outcome.faults.append(f"{name} counts the units {steps}")
    attempts = [event for event in events if event["event"] == "resumed"]
    if [event["generation"] for event in attempts] != sorted({event["generation"] for event in attempts}):
        outcome.faults.append(f"{name} was performed by two at once: {attempts}")
    if attempts[-1]["machine"] != state.result["machine"]:
        outcome.faults.append(f"{name} was closed by another than who performed it last")
    outcome.events += len(events)
    outcome.taken_over += len(attempts) - 1
    outcome.repeated += sum(event["event"] == "step" for event in events) - len(steps)
