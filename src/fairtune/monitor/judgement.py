"""What a study's evidence supports so far, worked out beside a live view, in a thread that leaves the processor to the runs.

The figures are those of a report: every verdict is recomputed from stored predictions, which takes a second or more. So it is
done when runs have ended, seldom while others are under way, and what it rests on is said. Looking at it is no look of the
sequential rule: that counts the times at which seeds were added, and an early verdict must pass the bound that the rule has for
its number of seeds.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from fairtune.core.errors import FairtuneError
from fairtune.core.numbers import plural
from fairtune.ledger.seals import DAMAGED, FAILED, FINISHED, KeptStates

ENDED = (FINISHED, FAILED, DAMAGED)
BUSY_SHARE, IDLE_SHARE = 0.005, 0.1
"""Of the time, at most, that is spent on verdicts while runs are under way: where all cores are busy, and where some are not."""
NICE = 10
"""How far the thread stands back behind runs."""
KEPT = 16
"""Studies whose verdicts are remembered."""
Key = tuple[tuple[str | int | float | None, ...], ...]
"""What a judgement rests on: the plan, and the runs that ended, each with how and with what it scored."""


@dataclass(frozen=True)
class ArmFigures:
    """What a report would say of an arm now; see `ArmView`."""

    counted: int
    mean: float | None
    low: float | None
    high: float | None
    against: str | None = None
    pairs: int = 0
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    word: str | None = None
    by: str = ""


@dataclass(frozen=True)
class Judgement:
    """What the evidence supported at some moment.

    Args:
        key: the plan and the runs that had ended.
        problem: why nothing can be said; empty else.
    """

    key: Key
    arms: dict[str, ArmFigures] = field(default_factory=dict)
    opening: str = ""
    problem: str = ""
    made: float = 0.0

    @property
    def counted(self) -> int:
        """Runs behind its figures."""
        return sum(arm.counted for arm in self.arms.values())

    def without_words(self) -> Judgement:
        """The figures alone, where a verdict that was taken from them is out of date."""
        return replace(self, opening="", arms={arm: replace(own, word=None) for arm, own in self.arms.items()})


def judge(runs: Path, study: str, key: Key, states: KeptStates | None = None) -> Judgement:
    """Work it out now.

    Args:
        states: of runs, where the ledger is watched.
    """
    from fairtune.analysis.arm_pairs import BOTH, SETTINGS
    from fairtune.analysis.results import load_results  # takes a second, which a page need not wait for

    made = time.time()
    try:
        results = load_results(runs, study, states)
        compared = {one.arm: one for one in results.comparisons}
        arms = {}
        for arm in results.arms:
            summary, found = results.summary(arm), compared.get(arm)
            figures = ArmFigures(summary.n, summary.mean if summary.n else None, summary.low, summary.high)
            if found is not None:
                low, high = found.family
                figures = ArmFigures(
                    summary.n, figures.mean, summary.low, summary.high, found.reference, found.found.n,
                    found.difference, low, high, found.verdict.word if found.found.n > 1 else None,
                    found.about if found.about in (SETTINGS, BOTH) else "",
                )  # fmt: skip
            arms[arm] = figures
        return Judgement(key, arms, results.verdict().opening, made=made)
    except FairtuneError as error:
        return Judgement(key, problem=str(error), made=made)
    except OSError as error:
        why = f"{error.filename} cannot be read ({error.strerror})"
        return Judgement(key, problem=f"no verdict could be worked out: {why}", made=made)
    except Exception as error:  # a study that changes under our eyes may hold anything; the view goes on
        return Judgement(key, problem=f"no verdict could be worked out ({type(error).__name__}: {error})", made=made)


class Judge:
    """Keeps the newest judgement of each study that is looked at.

    Args:
        threaded: work in a thread of its own and answer with what is known; else work when asked, however long it takes.
    """

    def __init__(
        self, runs: Path, threaded: bool = True, judge: Callable[[Path, str, Key], Judgement] = judge,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._runs, self._threaded, self._judge, self._clock = runs, threaded, judge, clock
        self._known: dict[str, Judgement] = {}
        self._wait_until: dict[str, float] = {}
        self._wanted: dict[str, Key] = {}
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        _has_idle_core()  # counts from here

    def latest(self, study: str, key: Key, running: bool) -> Judgement | None:
        """What is known of a study; what ended since is worked out as soon as that is due.

        Args:
            running: runs are under way, which need the processor more.
        """
        if not key:
            return None
        with self._condition:
            known = self._known.get(study)
            if known is not None and known.key == key:
                return known
            if running and known is not None and self._clock() < self._wait_until.get(study, 0.0):
                return known
            if self._threaded:
                self._wanted[study] = key
                self._begin()
                self._condition.notify()
                return known
        return self._work(study, key)

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is left to be worked out, at most so long; whether that is so."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._wanted, seconds)

    def _begin(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._keep_working, name="verdicts-so-far", daemon=True)
            self._thread.start()

    def _keep_working(self) -> None:
        with suppress(OSError, AttributeError):  # on Linux a thread has a niceness of its own
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while True:
            with self._condition:
                self._condition.wait_for(lambda: bool(self._wanted))
                study, key = next(iter(self._wanted.items()))
            self._work(study, key)
            with self._condition:
                if self._wanted.get(study) == key:
                    del self._wanted[study]
                self._condition.notify_all()

    def _work(self, study: str, key: Key) -> Judgement:
        began = time.thread_time()
        found = self._judge(self._runs, study, key)
        cost = time.thread_time() - began
        with self._condition:
            self._known.pop(study, None)
            self._known[study] = found
            self._wait_until[study] = self._clock() + cost / (IDLE_SHARE if _has_idle_core() else BUSY_SHARE)
            while len(self._known) > KEPT:
                self._wait_until.pop(oldest := next(iter(self._known)), None)
                del self._known[oldest]
        return found


def whole_seeds(states: dict[tuple[str, int], str]) -> tuple[int, int]:
    """Seeds of which every arm's run has ended, and all seeds."""
    planned = Counter(seed for _, seed in states)
    ended = Counter(seed for (_, seed), state in states.items() if state in ENDED)
    return sum(ended[seed] == count for seed, count in planned.items()), len(planned)


def peeking_text(n: int, planned: int) -> str:
    return f"peeking: {n} of {plural(planned, 'seed')}"


def _has_idle_core() -> bool:
    """Whether the machine has had a whole core to spare since this was last asked."""
    return psutil.cpu_percent(interval=None) <= 100 * (1 - 1 / (psutil.cpu_count() or 1))
