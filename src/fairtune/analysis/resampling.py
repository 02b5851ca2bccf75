"""The bootstrap over seeds and examples (or documents) for the difference between two arms.

Both kinds of luck count: another seed would have trained other weights, and another test set would have held other
examples. Each draw takes seeds and examples with replacement; the examples of a draw are the same for both arms and all
seeds, so that what they share cancels. What a run scored is kept as totals of which a metric is a function, so any weighting
of its examples gives the metric at once; metrics of rankings and probabilities take the weights themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fairtune.ledger.predictions import SUMS, Predictions, TextScores
from fairtune.settings.metrics import METRICS
from fairtune.settings.score_metrics import ScoredExamples, Weighted

Floats = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int64]
DRAWS = 2000
CHUNK = 200
SEED = 20261115
FEW_CELLS = 16
"""Of a confusion matrix, up to which a matrix product counts faster than sorting."""
TOGETHER = 16
"""Seeds that are scored at once."""
SATTERTHWAITE, CAUTIOUS = 2.0, 0.5
"""Powers by which degrees of freedom grow. The first errs in up to 7.5 % of null comparisons of three seeds, where seeds are ten
times the luck of examples, as they often are of log losses and rankings; the second never in more than 5 %."""
WHOLE = 2**24
"""Whole numbers below this are exact in single precision, in which a matrix product takes half the time."""
KEPT_BYTES = 2**26
"""Draws that take more are not kept for the next comparison."""


class Scored(Protocol):
    """What one run scored, by unit of resampling."""

    @property
    def unit(self) -> str:
        """What is resampled, in a word."""

    @property
    def kept(self) -> dict[Any, Floats]:
        """Figures of every draw that were asked for in a comparison: an arm that many are compared with is drawn once."""

    @property
    def units(self) -> int:
        """How many there are."""

    @property
    def drawn(self) -> int:
        """How many of them a draw takes."""

    @property
    def least_variance(self) -> float:
        """No difference between two arms is surer than this."""

    @property
    def most_freedom(self) -> float:
        """Degrees of freedom that the units allow."""

    @property
    def freedom_power(self) -> float:
        """How fast degrees of freedom grow where seeds are not all of the luck; see `statistics.freedom`."""

    def totals(self, weights: Floats) -> Floats:
        """Totals of every draw, [draws, ...], from weights [draws, units]."""

    def weighted(self, metric: str) -> Weighted:
        """A metric that is no function of totals, prepared for any weights [draws, units]."""


@dataclass(frozen=True)
class Classified:
    """Predicted classes; the totals are confusion counts [draws, true class, predicted class].

    Args:
        examples: with scores, of which there are further metrics.
    """

    labels: Classes
    predicted: Classes
    classes: int
    unit: str = "example"
    most_freedom: float = math.inf
    examples: ScoredExamples | None = None
    freedom_power: float = SATTERTHWAITE
    kept: dict[Any, Floats] = field(default_factory=dict, compare=False, repr=False)

    @property
    def units(self) -> int:
        return len(self.labels)

    @property
    def drawn(self) -> int:
        return len(self.labels)

    @property
    def least_variance(self) -> float:
        """Arms that agree on every example may still differ on the next: one example that goes the other way."""
        return 1 / len(self.labels) ** 2

    @cached_property
    def _cells(self) -> tuple[Classes, Classes, Classes]:
        """Examples in the order of their cells, the cells that occur, and where each begins."""
        cells = self.labels * self.classes + self.predicted
        order = np.argsort(cells, kind="stable")
        found, starts = np.unique(cells[order], return_index=True)
        return order, found, starts

    @cached_property
    def members(self) -> npt.NDArray[np.bool_]:
        """Which examples are in which cell, [examples, cells]."""
        cells = self.labels * self.classes + self.predicted
        return np.asarray(cells[:, None] == np.arange(self.classes * self.classes))

    def totals(self, weights: Floats) -> Floats:
        order, found, starts = self._cells
        counts = np.zeros((len(weights), self.classes * self.classes))
        counts[:, found] = np.add.reduceat(weights[:, order], starts, axis=1)
        return counts.reshape(len(weights), self.classes, self.classes)

    def weighted(self, metric: str) -> Weighted:
        prepare = METRICS[metric].from_scores
        if prepare is None or self.examples is None:
            raise TypeError(f"there are no scores that {metric} follows from")
        return prepare(replace(self.examples))  # what is worked out on the way goes when the draws are done


@dataclass(frozen=True)
class Documents:
    """Sums by document, [documents, (nll, tokens, bytes, words, correct)]; a document's tokens are not independent.

    Corpora may have few documents, so one fewer is drawn than there are, as for seeds, and they bound the freedom.
    """

    sums: Floats
    unit: str = "document"
    least_variance: float = 0.0
    freedom_power: float = SATTERTHWAITE
    kept: dict[Any, Floats] = field(default_factory=dict, compare=False, repr=False)

    @property
    def units(self) -> int:
        return len(self.sums)

    @property
    def drawn(self) -> int:
        return len(self.sums) - 1

    @property
    def most_freedom(self) -> float:
        return len(self.sums) - 1

    def totals(self, weights: Floats) -> Floats:
        return np.asarray(weights @ self.sums)

    def weighted(self, metric: str) -> Weighted:
        raise TypeError(f"{metric} follows from scores of classes, and documents have none")


def scored(found: Predictions | TextScores, metric: str | None = None) -> Scored:
    """What a run stored, ready to be resampled.

    Args:
        metric: that is asked for, where it matters.
    """
    if isinstance(found, TextScores):
        return Documents(np.stack([np.asarray(getattr(found, name), dtype=np.float64) for name in SUMS], axis=1))
    examples = ScoredExamples(found.labels, found.scores)
    own = Classified(found.labels, found.predicted, examples.classes, examples=examples)
    return own if metric is None else limited(own, found, metric)


def limited(own: Scored, found: Predictions | TextScores, metric: str) -> Scored:
    """The same as a metric has it: what ranks two classes knows no more than the rarer one tells it, and where scores count, the
    luck of seeds is often nearly all there is."""
    if METRICS[metric].from_scores is None or not isinstance(own, Classified) or not isinstance(found, Predictions):
        return own
    most = _class_freedom(found) if METRICS[metric].ranks else math.inf
    return replace(own, most_freedom=most, freedom_power=CAUTIOUS)


def _class_freedom(found: Predictions) -> float:
    """Degrees of freedom within classes: of two, those of the rarer; of several, those of all together."""
    sizes = np.bincount(found.labels)
    sizes = sizes[sizes > 0]
    return float(sizes.min() - 1 if found.scores.shape[1] == 2 else sizes.sum() - len(sizes))


def metric_from_totals(metric: str) -> Callable[[Floats], Floats]:
    """A metric as a function of the totals of its kind."""
    return METRICS[metric].formula


def compared_from_totals(metric: str) -> Callable[[Floats], Floats]:
    """What is compared of a metric, as a function of the totals of its kind: a logarithm where ratios count."""
    facts = METRICS[metric]
    return _logarithm_of(facts.formula) if facts.ratios else facts.formula


@cache  # one object for each formula, by which its figures are found again
def _logarithm_of(formula: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    return lambda totals: np.log(formula(totals))


def compared_value(value: float, metric: str) -> float:
    """A figure on the scale on which it is compared."""
    return math.log(value) if METRICS[metric].ratios and value > 0 else value


def bootstrap_variance(ours: Sequence[Scored], theirs: Sequence[Scored], metric: str, draws: int = DRAWS) -> float:
    """Variance of the mean difference (ours - theirs) of a metric over seeds and examples, two seeds or more."""
    if METRICS[metric].from_scores is not None:
        return bootstrap_variances(ours, theirs, {}, draws, [metric])[metric]
    return bootstrap_variances(ours, theirs, {metric: compared_from_totals(metric)}, draws)[metric]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def bootstrap_variances(
    ours: Sequence[Scored],
    theirs: Sequence[Scored] | None,
    figures: Mapping[str, Callable[[Floats], Floats]],
    draws: int = DRAWS,
    weighted: Collection[str] = (),
    keep: Collection[str] = (),
) -> dict[str, float]:
    """The same of several figures at once, each a function of totals, which are made once; or of one arm's own means.

    Two known biases of the plain two-way bootstrap are corrected. With few seeds it is too sure of itself by (n-1)/n: one seed
    fewer is drawn than there are (Rao and Wu 1988). And luck that belongs to one seed on one example is counted three
    times, since drawing seeds, examples and both each show it: the two surplus shares are taken off (Owen 2007).

    Args:
        ours, theirs: what was scored, by seed; the same place is the same seed.
        weighted: further metrics, which are no functions of totals. A draw that lacks a class has none of those that take two:
            it says nothing, and is left out.
        keep: of one arm's own figures, those that comparisons will ask for.
    """
    generator, chunks = _draw_units(ours[0].units, ours[0].drawn, draws)
    drawn = _DrawnFigures([*ours, *(theirs or ())], figures, weighted, draws)
    for counts in chunks:
        drawn.take(counts.astype(np.float64))
    drawn.keep(keep if theirs is None else (*figures, *weighted))
    seeds = len(ours)
    chosen = generator.multinomial(seeds - 1, np.full(seeds, 1 / seeds), size=draws).T / (seeds - 1)
    found = {name: drawn.of(ours, name) for name in (*figures, *weighted)}
    if theirs is not None:
        found = {name: own - drawn.of(theirs, name) for name, own in found.items()}
    return {
        name: _variance(*(_defined(by_seed, chosen) if name in weighted else (by_seed, chosen)))
        for name, by_seed in found.items()
    }


class _DrawnFigures:
    """Figures of every draw of some runs, of which those that are known already are not worked out again."""

    def __init__(
        self,
        runs: Sequence[Scored],
        figures: Mapping[str, Callable[[Floats], Floats]],
        weighted: Collection[str],
        draws: int,
    ) -> None:
        self._figures = figures
        self._keys: dict[str, Any] = {name: (made, draws) for name, made in figures.items()}
        self._keys |= {name: (name, draws) for name in weighted}
        self._parts: dict[tuple[int, str], list[Floats]] = {}
        each = {id(one): one for one in runs}.values()
        self._lacking = {name: [one for one in each if key not in one.kept] for name, key in self._keys.items()}
        self._weighted = {name: [one.weighted(name) for one in self._lacking[name]] for name in weighted}
        lacking = {id(one): one for name in figures for one in self._lacking[name]}
        self._counted = list(lacking.values())

    def take(self, weights: Floats) -> None:
        """Some draws more, by how often each takes each unit."""
        place = 0
        for totals in _totals(self._counted, weights):
            for name, score in self._figures.items():
                if self._lacking[name]:
                    self._add(self._counted[place : place + len(totals)], name, score(totals))
            place += len(totals)
        for name, prepared in self._weighted.items():
            for one, figure in zip(self._lacking[name], prepared, strict=True):
                self._add([one], name, [figure(weights)])

    def _add(self, runs: Sequence[Scored], name: str, rows: Iterable[Floats]) -> None:
        for one, row in zip(runs, rows, strict=True):
            self._parts.setdefault((id(one), name), []).append(row)

    def keep(self, names: Collection[str]) -> None:
        """Let the runs keep some of what was worked out."""
        for name in names:
            for one in self._lacking[name]:
                one.kept[self._keys[name]] = np.concatenate(self._parts[id(one), name])

    def of(self, side: Sequence[Scored], name: str) -> Floats:
        """A figure of some of the runs, [runs, draws]."""
        key = self._keys[name]
        return np.stack(
            [one.kept[key] if key in one.kept else np.concatenate(self._parts[id(one), name]) for one in side]
        )


def _defined(by_seed: Floats, chosen: Floats) -> tuple[Floats, Floats]:
    """The draws of which there is a figure, where that is so of some."""
    known = ~np.isnan(by_seed).any(axis=0)
    return (by_seed[:, known], chosen[:, known]) if known.sum() > 1 else (by_seed, chosen)


def _totals(side: Sequence[Scored], weights: Floats) -> Iterator[Floats]:
    """The totals of each draw, [some seeds, draws, ...] at a time: one seed at a time is slow, all at once may not fit."""
    for first in range(0, len(side), TOGETHER):
        part = side[first : first + TOGETHER]
        known = [one for one in part if isinstance(one, Classified) and one.classes**2 <= FEW_CELLS]
        if len(known) < len(part) or known[0].drawn >= WHOLE or not _are_alike(known):
            yield np.stack([one.totals(weights) for one in part])
        else:
            yield _counts(known, weights.astype(np.float32))


def _are_alike(runs: Sequence[Classified]) -> bool:
    first = runs[0]
    return all(one.classes == first.classes and np.array_equal(one.labels, first.labels) for one in runs[1:])


def _counts(runs: Sequence[Classified], weights: npt.NDArray[np.float32]) -> Floats:
    """Confusion counts of runs that were scored on the same examples: whole numbers, so that any way gives the same to the bit.

    What is left of a class is the count of its last cell, which need not be counted.
    """
    classes, labels = runs[0].classes, runs[0].labels
    members = np.concatenate([one.members.reshape(-1, classes, classes)[:, :, :-1] for one in runs], axis=1)
    counted = members.reshape(len(labels), -1).T.astype(np.float32) @ weights.T
    counts = np.empty((classes, classes, len(runs), len(weights)))  # long rows, which add up fast
    counts[:, :-1] = np.moveaxis(counted.reshape(len(runs), classes, classes - 1, len(weights)), 0, 2)
    sizes = (np.arange(classes)[:, None] == labels).astype(np.float32) @ weights.T
    counts[:, -1] = sizes[:, None] - counts[:, :-1].sum(axis=1)
    return np.moveaxis(counts, (2, 3), (0, 1))


def _variance(by_seed: Floats, chosen: Floats) -> float:
    if not np.isfinite(by_seed).all():
        return math.inf  # perplexities beyond what a number can hold
    both = float(np.var((chosen * by_seed).sum(axis=0), ddof=1))
    alone, together = float(np.var(by_seed, axis=1, ddof=1).mean()), float(np.var(by_seed.mean(axis=0), ddof=1))
    interaction = max(0.0, (alone - together) / (len(by_seed) - 1))
    # The luck of examples with just these seeds is part of the truth, so never less than that.
    return max(together, both - 2 * interaction)


def _draw_units(units: int, drawn: int, draws: int) -> tuple[np.random.Generator, Iterable[npt.NDArray[Any]]]:
    """How often each draw takes each unit, [some draws, units] at a time, and the generator as these draws leave it.

    Comparisons of one test split all draw the same, and drawing takes longer than scoring what was drawn: it is done once.
    """
    generator = np.random.default_rng(SEED)
    if draws * units * np.min_scalar_type(drawn).itemsize > KEPT_BYTES:
        return generator, _chunks(generator, units, drawn, draws)
    chunks, generator.bit_generator.state = _kept_draws(units, drawn, draws)
    return generator, chunks


@lru_cache(maxsize=1)
def _kept_draws(units: int, drawn: int, draws: int) -> tuple[list[npt.NDArray[Any]], Any]:
    generator, smallest = np.random.default_rng(SEED), np.min_scalar_type(drawn)
    return [
        counts.astype(smallest) for counts in _chunks(generator, units, drawn, draws)
    ], generator.bit_generator.state


def _chunks(generator: np.random.Generator, units: int, drawn: int, draws: int) -> Iterator[npt.NDArray[Any]]:
    for start in range(0, draws, CHUNK):
        yield generator.multinomial(drawn, np.full(units, 1 / units), size=min(CHUNK, draws - start))
