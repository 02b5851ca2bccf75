"""A thousand pretended runs and some processes that compete for them, of which one is killed or held up again and again.

Started as `python -m tests.core.lease_hive LEASE RUNS WORKERS SEED`; forks its workers, so that each costs nothing to start. Each
pretends to be a machine of its own: a dead holder is noticed by its silence alone.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from fairtune.core import locks
from fairtune.core.errors import LeaseLost
from fairtune.core.locks import LeaseWatch, require_held

RESULT, TWICE = "result", "twice"


def work(folder: Path, runs: int, machine: int) -> None:
    """Finish whatever is not finished, in an order of one's own, until all is."""
    locks._machine = lambda: f"machine {machine}"  # type: ignore[assignment]
    locks.BEAT_SECONDS, locks.SILENCE_SECONDS = 0.1, 1.0
    generator = random.Random(machine)
    watches: dict[int, LeaseWatch] = {}
    left = list(range(runs))
    while left:
        generator.shuffle(left)
        for run in list(left):
            home = folder / str(run)
            if not (home / RESULT).exists():
                watch = watches.setdefault(run, LeaseWatch(home))
                lease = watch.try_take()
                if lease is None:
                    continue
                try:
                    _perform(home, lease, generator)
                except LeaseLost:
                    continue
                lease.release(finished=(home / RESULT).exists())
            left.remove(run)
            watches.pop(run, None)


def _perform(home: Path, lease: locks.Lease, generator: random.Random) -> None:
    if (home / RESULT).exists():
        return
    lease.check()
    if generator.random() < 0.3:
        time.sleep(generator.random() * 0.01)
    aside = home / f".{os.getpid()}"
    aside.write_text(str(lease.number))
    require_held(home)
    try:
        os.link(aside, home / RESULT)
    except FileExistsError:
        (home / TWICE).touch()
    aside.unlink()


def main() -> None:
    folder, runs, workers, seed = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    generator, machines = random.Random(seed), iter(range(10**6))
    at_work: dict[int, None] = {}
    kills = pauses = 0

    def start() -> None:
        machine = next(machines)
        pid = os.fork()
        if pid == 0:
            work(folder, runs, machine)
            os._exit(0)
        at_work[pid] = None

    for _ in range(workers):
        start()
    while at_work:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            del at_work[pid]
            if status:
                start()
            continue
        time.sleep(0.02 + 0.05 * generator.random())
        victim = generator.choice(list(at_work))
        if kills < 40:
            kills += 1
            os.kill(victim, signal.SIGKILL)
        elif pauses < 3:
            pauses += 1
            os.kill(victim, signal.SIGSTOP)
            time.sleep(0.3)
            os.kill(victim, signal.SIGCONT)
    print(kills, pauses)


if __name__ == "__main__":
    main()
