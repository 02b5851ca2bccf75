"""What a live view shows of a study, as plain data: the terminal, `status`, the browser and trackers all show this.

Scores, means and differences are in the metric's own unit, as in the ledger (0.93, not 93); whoever shows them formats them with
`scale_of(view.metric)`. Times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

Points = tuple[tuple[int, float], ...]
"""Pairs of an optimizer step and a value."""


@dataclass(frozen=True)
class RunView:
    """A run.

    Args:
        state: waiting, running, finished, failed, interrupted or damaged.
        step, steps: made, and planned; None where a run has none, as a simple baseline has.
        loss: training loss, the mean of the latest steps.
        score: of the study's metric, on `split`: validation while it trains, and of trials; else test once it has finished.
        speed: optimizer steps per second, lately.
        seconds: that it took, or has taken so far.
        left: seconds to go, roughly; None where that cannot be said.
        phase: what it does just now, in words (`training`, `tokenising, 3,000 of 20,000`); None unless it runs.
        reason: why it failed, or what is wrong with it.
        warnings: the latest, oldest first.
    """

    arm: str
    seed: int
    position: int
    state: str
    step: int | None = None
    steps: int | None = None
    epoch: float | None = None
    epochs: float | None = None
    loss: float | None = None
    score: float | None = None
    split: str | None = None
    speed: float | None = None
    seconds: float | None = None
    left: float | None = None
    phase: str | None = None
    worker: str | None = None
    reason: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ArmView:
    """An arm so far.

    Args:
        place: in the study's order; colours go by it.
        n, planned: runs that finished, and all of them.
        counts: of runs by state.
        counted: runs behind the figures below, which are those of a report; fewer than `n` until they are worked out anew.
        mean, low, high: of their test scores, with its interval; None where that takes more runs.
        against: the arm that it is compared with; None for the reference.
        pairs: seeds that both have.
        difference, difference_low, difference_high: to that arm, over these seeds, corrected for the whole family.
        word: the verdict so far; None where none can be had yet.
        by: what the word is about where that is not methods alone: `settings`, or `methods and settings`.
    """

    arm: str
    place: int
    n: int
    planned: int
    counts: dict[str, int]
    counted: int = 0
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    against: str | None = None
    pairs: int = 0
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    word: str | None = None
    by: str = ""


@dataclass(frozen=True)
class VerdictView:
    """What the evidence supports so far.

    Args:
        opening: the report's first sentences.
        peeking: `peeking: 3 of 5 seeds` while runs are still to come; empty once all have ended.
        n, planned: whole seeds, every arm's run of which has ended, and all of them.
        note: what a look at it means: it is not counted, and it may change.
        problem: why there is none, as of a study whose plan cannot be judged; empty else.
        made: when it was worked out, in seconds since 1970.
    """

    opening: str = ""
    peeking: str = ""
    n: int = 0
    planned: int = 0
    note: str = ""
    problem: str = ""
    made: float | None = None


@dataclass(frozen=True)
class DeviceView:
    """A device that works on the study, by what its worker last said.

    Args:
        worker: such as `cpu-0` or `cuda-1`.
        device: such as `cpu` or `cuda:1`, and what it is called.
        run: `arm/seed-n` that is under way there.
        age: seconds since it last said anything, by the reader's clock; `fresh` says whether that is as it should be.
        load: share of the time that it is busy, 0 to 1.
        temperature: degrees Celsius.
        others: processes of others on it.
    """

    worker: str
    device: str
    run: str | None = None
    fresh: bool = True
    age: float | None = None
    load: float | None = None
    memory_used: int | None = None
    memory: int | None = None
    temperature: float | None = None
    others: int | None = None


@dataclass(frozen=True)
class ArmCurve:
    """The runs of an arm over their steps, as a report draws them: a mean, and a band from the lowest to the highest.

    Args:
        n: runs behind mean and band: those that finished, or where none has yet all that are under way, up to the step that all
            have reached; so a run that is behind, or failed, ends or leaves the mean, and never bends it.
        single: the other runs, each for itself, by seed.
    """

    arm: str
    place: int
    steps: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    n: int
    single: tuple[tuple[int, Points], ...] = ()


@dataclass(frozen=True)
class CurvesView:
    """Curves by arm.

    Args:
        losses: groups of arms whose training losses are the same quantity, each with what its heading adds (`of focal`).
        scores: of the study's metric on validation.
    """

    losses: tuple[tuple[str, tuple[ArmCurve, ...]], ...] = ()
    scores: tuple[ArmCurve, ...] = ()


@dataclass(frozen=True)
class StudyView:
    """A study as it is now.

    Args:
        state: planned, running, finished (every run has ended), stopped (runs are to come and nobody works on them), or unreadable,
            with the problem.
        about: task, model and metric, in words.
        counts: of runs by state.
        left: seconds until the last run ends, roughly; None where that cannot be said.
        arms: in the study's order.
        runs: those under way, then those that failed or are damaged, then the latest that ended, then the next in the queue:
            at most `SHOWN` of each; `counts` has them all.
        log: the latest lines of what workers and runs said, oldest first, each with who said it.
    """

    study: str
    state: str
    about: str = ""
    metric: str | None = None
    problem: str = ""
    counts: dict[str, int] | None = None
    total: int = 0
    left: float | None = None
    arms: tuple[ArmView, ...] = ()
    runs: tuple[RunView, ...] = ()
    devices: tuple[DeviceView, ...] = ()
    verdict: VerdictView = VerdictView()
    log: tuple[tuple[str, str], ...] = ()
