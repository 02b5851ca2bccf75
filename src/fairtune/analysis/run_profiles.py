"""Runs over many tasks: the interquartile mean and the performance profile of an arm (Agarwal et al., 2021), own code.

Scores of tasks are put on one scale by the arm that is compared with: a run's gain is its score less the mean of that arm's runs
on the same task, on the scale on which the metric is compared. Every task has the same weight, however many runs it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairtune.analysis.task_means import SEED, Floats, Gains, draw_runs

FEWEST_FOR_PROFILES = 5
"""Tasks from which on there is enough of a distribution to be shown."""
POINTS = 61
MOST_DRAWS = 500


@dataclass(frozen=True)
class RunProfile:
    """The distribution of an arm's gains over tasks and runs.

    Args:
        iqm: the mean of the middle half of them.
        at: gains at which the profile is known.
        share: of runs with a gain of more than that; every task counts the same.
        low, high: of that share, point by point, from a stratified bootstrap.
    """

    iqm: float
    iqm_low: float
    iqm_high: float
    at: tuple[float, ...]
    share: tuple[float, ...]
    share_low: tuple[float, ...]
    share_high: tuple[float, ...]


def interquartile_mean(values: Floats, weights: Floats) -> float:
    """The mean of what lies between the quartiles, by weight; a value on a quartile counts in part.

    With equal weights and a number that four divides, it is the mean of the middle half.
    """
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order] / weights.sum()
    upper = np.cumsum(weights)
    inside = np.clip(np.minimum(upper, 0.75) - np.maximum(upper - weights, 0.25), 0, None)
    return float((inside * values).sum() / inside.sum())


def profile_runs(tasks: Sequence[Sequence[Gains]], confidence: float) -> RunProfile | None:
    """An arm's interquartile mean and performance profile; None with fewer than five tasks.

    Args:
        tasks: the cells of each task.
    """
    if len(tasks) < FEWEST_FOR_PROFILES or any(not ours or not theirs for cells in tasks for ours, theirs in cells):
        return None
    weights = np.concatenate([np.full(len(ours), 1 / (len(cells) * len(ours))) for cells in tasks for ours, _ in cells])
    weights /= len(tasks)
    cells = [cell for task in tasks for cell in task]
    own = np.concatenate([np.asarray(ours, dtype=np.float64) - np.mean(theirs) for ours, theirs in cells])
    generator = np.random.default_rng(SEED + 1)
    drawn = np.concatenate([_drawn_gains(cell, generator) for cell in cells], axis=1)[:MOST_DRAWS]
    edge = 0.05 * (own.max() - own.min()) or 0.01
    at = np.linspace(min(own.min(), 0.0) - edge, max(own.max(), 0.0) + edge, POINTS)
    ends = [0.5 - confidence / 2, 0.5 + confidence / 2]
    means = [interquartile_mean(row, weights) for row in drawn]
    shares = ((drawn[:, None, :] > at[None, :, None]) * weights).sum(axis=2)
    low, high = np.quantile(shares, ends, axis=0)
    iqm_low, iqm_high = np.quantile(means, ends)
    share = ((own[None, :] > at[:, None]) * weights).sum(axis=1)
    return RunProfile(
        interquartile_mean(own, weights),
        float(iqm_low),
        float(iqm_high),
        *(tuple(map(float, one)) for one in (at, share, low, high)),
    )


def _drawn_gains(cell: Gains, generator: np.random.Generator) -> Floats:
    ours, theirs = draw_runs(cell, generator)
    return np.asarray(ours - theirs.mean(axis=1, keepdims=True))
