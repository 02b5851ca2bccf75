"""What two printed figures allow to say, given no more than the size of the test set and how much seeds differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from scipy import special

from fairtune.analysis import figure_luck as luck
from fairtune.analysis.printed_figures import Granularity, PrintedFigure, find_counts, read_figures
from fairtune.analysis.reported_splits import ReportedSplit, reported_split, reported_tasks
from fairtune.core.errors import FairtuneError, nearest, one_of
from fairtune.settings.bands import known_seed_sd
from fairtune.settings.metrics import METRICS, metrics_of_kind
from fairtune.settings.values import MOST_SEEDS, MOST_STEPS

ACCURACY = "accuracy"
MOST_PICKED = 10_000
LARGEST_SD = 50.0
PUBLISHED_RUNS = 5
PUBLISHED = "published for BERT-base cased, 5 runs (transformers flax README)"
UNKNOWN_SDS = (0.16, 1.09)
"""The least and the most that is published over seeds (mnli and mrpc), in points; wnli with its 71 examples apart."""
CANNOT_TELL, DEPENDS, MORE_THAN_LUCK = "cannot tell", "depends", "more than luck"


@dataclass(frozen=True)
class SeedLuck:
    """How much seeds differ, in points, from the least to the most that has to be reckoned with.

    Args:
        freedom: degrees of freedom that it is known with.
        basis: where it is known from.
        known: whether it is one figure rather than a range that was assumed.
    """

    low: tuple[float, float]
    high: tuple[float, float]
    freedom: float
    basis: str
    known: bool = True

    @property
    def ends(self) -> tuple[tuple[float, float], ...]:
        return (self.low,) if self.low == self.high else (self.low, self.high)


@dataclass(frozen=True)
class FigureQuestion:
    """What is asked about one printed figure or two.

    Args:
        examples: of the test set; None where the metric does not go by it.
        seeds: that each figure is the mean over.
        best_of: how many seeds or evaluations each figure is the best of.
        split: that the examples are known from.
    """

    figures: tuple[PrintedFigure, ...]
    metric: str
    examples: int | None
    seeds: tuple[int, int]
    best_of: tuple[int, int]
    luck: SeedLuck
    split: ReportedSplit | None = None

    @property
    def is_pair(self) -> bool:
        return len(self.figures) == 2

    @property
    def single_runs(self) -> bool:
        return self.seeds == (1, 1)


def ask_figures(
    line: str,
    examples: int | None = None,
    seeds: tuple[int, int] = (1, 1),
    best_of: tuple[int, int] = (1, 1),
    sd: float | None = None,
    task: str | None = None,
    metric: str | None = None,
) -> FigureQuestion:
    """A reviewer's question, checked.

    Args:
        sd: of each arm over seeds, in points.

    Raises:
        FairtuneError: what cannot be, in a sentence.
    """
    split = _known_split(task)
    metric = _known_metric(metric or (split.metric if split else ACCURACY))
    for name, values, most in (("--seeds", seeds, MOST_SEEDS), ("--best-of", best_of, MOST_PICKED)):
        if not all(1 <= value <= most for value in values):
            raise FairtuneError(f"{name}: found {one_of(dict.fromkeys(values))}; it must be from 1 to {most:,}.")
    if examples is not None and not 1 <= examples <= MOST_STEPS:
        raise FairtuneError(f"--n: found {examples}; a test set has from 1 to {MOST_STEPS:,} examples.")
    if sd is not None and not 0 < sd <= LARGEST_SD:
        raise FairtuneError(f"--sd: found {sd:g}; a deviation over seeds is above 0 and at most {LARGEST_SD:g} points.")
    figures = read_figures(line, metric)
    if examples is None and split is not None:
        examples = split.examples
    elif split is not None and examples != split.examples:
        split = None  # the size that was given counts, and the split is another
    if examples is None and metric == ACCURACY:
        raise FairtuneError(
            f"how many test examples? Give --n, such as --n 872, or a task whose size is known: --task {one_of(reported_tasks())}."
        )
    found = _seed_luck(figures, seeds, sd, task, metric)
    return FigureQuestion(figures, metric, examples if metric == ACCURACY else None, seeds, best_of, found, split)


def _known_split(task: str | None) -> ReportedSplit | None:
    if task is None:
        return None
    found = reported_split(task)
    if found is None:
        known = reported_tasks()
        raise FairtuneError(
            f"--task: nothing is known of '{task}'; known are {one_of(known)}.{nearest(task, known)} For any other, give --n and, "
            "if the paper has one, --sd."
        )
    return found


def _known_metric(metric: str) -> str:
    allowed = [
        name
        for name in metrics_of_kind("classify")
        if METRICS[name].shown != "plain" and not METRICS[name].lower_is_better
    ]
    if metric not in allowed:
        raise FairtuneError(f"--metric: '{metric}' is none of {one_of(allowed)}.{nearest(metric, allowed)}")
    return metric


def _seed_luck(
    figures: tuple[PrintedFigure, ...], seeds: tuple[int, int], sd: float | None, task: str | None, metric: str
) -> SeedLuck:
    spreads = [figure.spread for figure in figures if figure.spread is not None]
    own = float(sum(seeds) - 2) if len(figures) == 2 else float(seeds[0] - 1)
    if spreads and sd is not None:
        raise FairtuneError("a deviation stands with the figures and in --sd; give one of the two.")
    if spreads:
        if min(seeds[: len(figures)]) < 2:
            raise FairtuneError("a deviation over seeds takes two seeds or more: say how many with --seeds.")
        both = (spreads[0], spreads[-1])
        basis = "as printed, taken for standard deviations over seeds (if it is a standard error or an interval, this is wrong)"
        return SeedLuck(both, both, own, basis)
    if sd is not None:
        return SeedLuck((sd, sd), (sd, sd), own if own > 0 else math.inf, "as given with --sd")
    known = None if task is None else known_seed_sd(task, metric)
    if known is not None:
        return SeedLuck((100 * known,) * 2, (100 * known,) * 2, PUBLISHED_RUNS - 1.0, PUBLISHED)
    basis = "assumed: the least and the most of what is published for other tasks; --sd would narrow it"
    return SeedLuck((UNKNOWN_SDS[0],) * 2, (UNKNOWN_SDS[1],) * 2, math.inf, basis, known=False)


class FigureCheck:
    """The answer to a question, computed when it is asked for."""

    def __init__(self, question: FigureQuestion) -> None:
        self.question = question

    @cached_property
    def counts(self) -> list[Granularity]:
        """What each figure can stand for; empty for metrics that are no multiple of anything."""
        asked = self.question
        if asked.examples is None:
            return []
        return [find_counts(figure, asked.examples, k) for figure, k in zip(asked.figures, asked.seeds, strict=False)]

    @property
    def impossible(self) -> list[PrintedFigure]:
        return [figure for figure, found in zip(self.question.figures, self.counts, strict=False) if not found.possible]

    @property
    def difference(self) -> float:
        """The first less the second, in points."""
        first, second = self.question.figures
        return float(first.percent - second.percent)

    @cached_property
    def unpaired(self) -> float | None:
        """Standard error from the test set alone, in points, as if the two had been scored on different examples."""
        if self.question.examples is None:
            return None
        first, second = self.question.figures
        return 100 * luck.unpaired_error(first.share, second.share, self.question.examples)

    @property
    def unpaired_p(self) -> float | None:
        if self.unpaired is None:
            return None
        return 2 * float(special.ndtr(-abs(self.difference) / self.unpaired))

    @cached_property
    def paired(self) -> luck.PairedRange | None:
        """What a paired test of two single runs could give."""
        n = self.question.examples
        if n is None or not self.question.single_runs:
            return None
        first, second = (round(figure.share * n) for figure in self.question.figures)
        return luck.paired_range(first, second, n)

    @property
    def seed_errors(self) -> tuple[float, float]:
        """Standard error of the difference from seeds alone, in points, at the least and at the most."""
        asked = self.question
        return luck.seed_error(asked.luck.low, asked.seeds), luck.seed_error(asked.luck.high, asked.seeds)

    @cached_property
    def reach(self) -> tuple[float, float]:
        """How far apart luck alone puts two figures in 19 of 20 cases, in points: at the least, and at the most.

        At the least seeds alone, or examples alone if every disagreement speaks for one model; at the most both, unpaired.
        """
        t = luck.critical(self.question.luck.freedom)
        seeds_low, seeds_high = (t * error for error in self.seed_errors)
        n, net = self.question.examples, abs(self.difference) / 100
        best = 100 * luck.paired_error(net, net, n) if n is not None and self.question.single_runs else 0.0
        return max(seeds_low, luck.Z * best), math.hypot(seeds_high, luck.Z * (self.unpaired or 0.0))

    @cached_property
    def picked(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """What picking the best adds to each figure on average, in points, at the least and at the most."""
        asked = self.question
        first, second = (luck.best_of(count) for count in asked.best_of)
        low, high = asked.luck.low, asked.luck.high
        return (first * low[0], second * low[1]), (first * high[0], second * high[1])

    @property
    def left(self) -> tuple[float, float]:
        """What is left of the difference once the luck of picking is taken off: at the least luck, and at the most."""
        sign = 1 if self.difference >= 0 else -1
        least, most = (sign * (self.difference - (first - second)) for first, second in self.picked)
        return max(0.0, least), max(0.0, most)

    @property
    def answer(self) -> str | None:
        """CANNOT_TELL, DEPENDS or MORE_THAN_LUCK; None of one figure."""
        if not self.question.is_pair:
            return None
        if min(self.left) > self.reach[1]:
            return MORE_THAN_LUCK
        return DEPENDS if max(self.left) > self.reach[0] else CANNOT_TELL


def check_figures(line: str, examples: int | None = None, **asked: Any) -> FigureCheck:
    """The answer about one printed figure or two; the arguments are those of `ask_figures`."""
    return FigureCheck(ask_figures(line, examples, **asked))
