"""Means over tasks: one difference for each task, all of the same weight, with an interval that counts tasks, seeds and examples.

A t interval over the tasks' differences with K - 1 degrees of freedom (Hartung and Knapp, 2001; with equal weights it is the
ordinary one), whose variance is never taken smaller than what the luck of seeds and examples within the tasks alone gives
(Knapp and Hartung, 2003; Röver, Knapp and Friede, 2015): a few tasks that agree by chance must not look like certainty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from fairtune.analysis.power import MOST_ADVISED, POWER
from fairtune.analysis.statistics import PairedDifference, no_difference

FEWEST_TASKS = 3
"""Tasks from which on anything is said over tasks."""
DRAWS, SEED = 2000, 20261118
Floats = npt.NDArray[np.float64]
Gains = tuple[Sequence[float], Sequence[float]]
"""Of one cell: the runs of the arm and those of the arm that it is compared with, the higher the better."""


@dataclass(frozen=True)
class TaskDifference:
    """A task's difference: the mean of its cells.

    Args:
        variance: of that mean, from seeds and examples; cells of one task are scored on the same examples, so their luck is
            taken to be shared altogether, the worst that can be.
    """

    task: str
    difference: float
    variance: float
    cells: int = 1


def task_difference(task: str, cells: Sequence[PairedDifference]) -> TaskDifference:
    """The difference of a task from its cells, one for each model."""
    mean = float(np.mean([one.difference for one in cells]))
    deviation = float(np.mean([math.sqrt(max(0.0, one.total_variance)) for one in cells]))
    return TaskDifference(task, mean, deviation**2, len(cells))


def mean_variance(tasks: Sequence[TaskDifference]) -> tuple[float, float]:
    """The variance of the mean over tasks as their scatter shows it, and as seeds and examples alone would give it."""
    count = len(tasks)
    within = sum(one.variance for one in tasks) / count**2
    if count < 2:
        return 0.0, within
    return float(np.var([one.difference for one in tasks], ddof=1)) / count, within


def mean_over_tasks(
    tasks: Sequence[TaskDifference],
    confidence: float,
    limits: tuple[float, float] = (-math.inf, math.inf),
    fewest: int = 2,
) -> PairedDifference:
    """The mean difference over tasks with its interval and p; without, where there are fewer tasks than are needed.

    Args:
        limits: that no difference of the metric can be beyond.
    """
    values = [one.difference for one in tasks]
    if len(tasks) < fewest:
        return no_difference(len(tasks), confidence, float(np.mean(values)) if values else math.nan, by_seed=values)
    between, within = mean_variance(tasks)
    mean, total, df = float(np.mean(values)), max(between, within), len(tasks) - 1.0
    half = float(special.stdtrit(df, 0.5 + confidence / 2)) * math.sqrt(total)
    tail = float(special.stdtr(df, -abs(mean) / math.sqrt(total))) if total > 0 else 0.0 if mean else 0.5
    return PairedDifference(
        len(tasks), mean, max(limits[0], mean - half), min(limits[1], mean + half), min(1.0, 2 * tail), within, total, df,
        confidence, unit="task", by_seed=tuple(values), limits=limits,
    )  # fmt: skip


def tasks_needed(found: PairedDifference, risk: float) -> int | None:
    """Tasks, as scattered as these, that would show a mean difference like this one with 80 % chance; None beyond all advice."""
    one_task = found.total_variance * found.n
    for count in range(found.n + 1, MOST_ADVISED + 1):
        df = count - 1.0
        needed = float(special.stdtrit(df, 1 - risk / 2)) + float(special.stdtrit(df, POWER))
        if needed * math.sqrt(one_task / count) <= abs(found.difference):
            return count
    return None


@dataclass(frozen=True)
class Improvement:
    """How often a run of the arm is better than one of the arm that it is compared with, on a task drawn at random.

    Args:
        low, high: percentile interval of a stratified bootstrap: runs are drawn anew within each cell.
    """

    mean: float
    low: float
    high: float


def chance_of_improvement(ours: Floats, theirs: Floats) -> Floats:
    """P(X > Y) over all pairs of runs, ties half; [draws, runs] each, one for each draw."""
    above, equal = ours[..., :, None] > theirs[..., None, :], ours[..., :, None] == theirs[..., None, :]
    return np.asarray((above + 0.5 * equal).mean(axis=(-2, -1)))


def mean_improvement(tasks: Sequence[Sequence[Gains]], confidence: float) -> Improvement | None:
    """The mean over tasks of P(X > Y) (Agarwal et al., 2021); cells of one task are averaged first.

    Args:
        tasks: the cells of each task.
    """
    if not tasks or any(not ours or not theirs for cells in tasks for ours, theirs in cells):
        return None
    generator = np.random.default_rng(SEED)
    mean = np.mean([np.mean([chance_of_improvement(*_arrays(cell)) for cell in cells]) for cells in tasks])
    drawn = over_tasks(tasks, lambda cell: chance_of_improvement(*draw_runs(cell, generator)))
    low, high = np.quantile(drawn, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Improvement(float(mean), float(low), float(high))


def over_tasks(tasks: Sequence[Sequence[Gains]], figure: Callable[[Gains], Floats]) -> Floats:
    """The mean over tasks of a cell's figure, in each draw."""
    return np.asarray(np.mean([np.mean([figure(cell) for cell in cells], axis=0) for cells in tasks], axis=0))


def draw_runs(cell: Gains, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Runs of both arms, drawn with replacement within their cell, [draws, runs] each."""
    ours, theirs = _arrays(cell)
    return tuple(side[generator.integers(0, len(side), (DRAWS, len(side)))] for side in (ours, theirs))  # type: ignore[return-value]


def _arrays(cell: Gains) -> tuple[Floats, Floats]:
    return np.asarray(cell[0], dtype=np.float64), np.asarray(cell[1], dtype=np.float64)
