"""One run as the ledger has it: its figures recomputed from what it stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairtune.analysis.decision_lines import HALF, LinePolicy
from fairtune.analysis.resampling import Scored, limited, scored
from fairtune.analysis.run_conditions import RunConditions, judge_samples
from fairtune.core.errors import LedgerError
from fairtune.ledger.environment import read_environment
from fairtune.ledger.events import SAMPLE, counted_events
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.predictions import SUMS, Predictions, TextScores, read_predictions
from fairtune.ledger.seals import DAMAGED, WAITING, RunState
from fairtune.ledger.timings import run_times
from fairtune.settings.metrics import METRICS, classification_metrics, text_metrics

SAME_EXAMPLES = (("ids", "labels"),)
SAME_TEXT = (("ids", "bytes", "words"), ("tokens",))
"""What runs that are compared have in common; another tokenizer makes other tokens of the same documents."""


CLOSE = 1e-9
"""Figures that differ by no more were computed from the same predictions, perhaps with another version of numpy."""


@dataclass(frozen=True)
class LedgerRun:
    """One planned run as the ledger has it.

    Args:
        state: as its sealed files have it; one that is not what it was when it was closed is damaged, and counts nowhere.
        lines: says where two classes are told apart.
    """

    arm: str
    seed: int
    position: int
    folder: RunFolder
    state: RunState
    lines: Callable[[], LinePolicy] = LinePolicy

    @property
    def status(self) -> str:
        """finished, failed, running, interrupted, waiting or damaged."""
        return self.state.status

    @property
    def result(self) -> dict[str, Any]:
        """Of a run that finished or failed; else empty."""
        return self.state.result

    @property
    def problem(self) -> str | None:
        """What is wrong with a damaged run."""
        return self.state.problem

    @property
    def begun(self) -> bool:
        """Whether it left something on record, finished or not, that can be read."""
        return self.status not in (WAITING, DAMAGED)

    @cached_property
    def test(self) -> Predictions | TextScores:
        """The test split, scored with the weights that were best on validation."""
        return self.scored("test")

    @cached_property
    def _resampled(self) -> Scored:
        return scored(self.test)

    def resampled(self, metric: str) -> Scored:
        """The test split, ready to be drawn from; what is drawn for one comparison need not be drawn for the next."""
        own = self._resampled
        return own if METRICS[metric].from_scores is None else limited(own, self.test, metric)

    @cached_property
    def line(self) -> float:
        """Where it tells two classes apart, as a difference of scores; 0 is a probability of one half."""
        policy = self.lines()
        return 0.0 if policy.threshold == HALF else policy.line(self._scored("validation"))

    def scored(self, split: str) -> Predictions | TextScores:
        """What it scored of a split, with the line at which it tells classes apart."""
        found = self._scored(split)
        return replace(found, line=self.line) if isinstance(found, Predictions) and self.line else found

    @cached_property
    def metrics(self) -> dict[str, float]:
        return metrics_of(self.test)

    @property
    def half_metrics(self) -> dict[str, float]:
        """The figures at one half, as the run itself recorded them."""
        found = self.test
        return metrics_of(replace(found, line=0.0)) if isinstance(found, Predictions) and found.line else self.metrics

    @cached_property
    def final(self) -> dict[str, float] | None:
        """Figures of the test split with the weights of the last step; classifiers leave none."""
        return None if isinstance(self.test, Predictions) else metrics_of(self._scored("final"))

    @property
    def last(self) -> dict[str, float]:
        """`final`, which must be there."""
        if self.final is None:
            raise LedgerError(
                f"{self.folder.path}: classifiers leave no figures of their last weights; only language models do."
            )
        return self.final

    @cached_property
    def environment(self) -> dict[str, Any] | None:
        """What it ran on; None where that is not on record."""
        return read_environment(self.folder)

    @cached_property
    def conditions(self) -> RunConditions | None:
        """How its device fared while it ran; None where nothing was sampled."""
        return judge_samples(f"{self.arm}/seed-{self.seed}", self.events_of(SAMPLE))

    @cached_property
    def times(self) -> dict[str, Any] | None:
        """Its own times, as its `timing.json` has them; None where it recorded none."""
        return run_times(self.result, self.events)

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        return counted_events(self.folder.events)

    def events_of(self, kind: str) -> list[dict[str, Any]]:
        """Those of one kind, in their order."""
        return self._events_by_kind.get(kind, [])

    @cached_property
    def _events_by_kind(self) -> dict[Any, list[dict[str, Any]]]:
        found: dict[Any, list[dict[str, Any]]] = {}
        for event in self.events:
            found.setdefault(event.get("event"), []).append(event)
        return found

    def _scored(self, split: str) -> Predictions | TextScores:
        found = read_predictions(self.folder.predictions, split)
        if not found.ids:
            raise LedgerError(
                f"{self.folder.predictions}: nothing was scored as '{split}'; move the run's folder away."
            )
        return found


def metrics_of(found: Predictions | TextScores) -> dict[str, float]:
    if isinstance(found, TextScores):
        return text_metrics(**{name: getattr(found, name) for name in SUMS})
    return classification_metrics(found.labels, found.scores, found.line)


def disagreeing_metrics(recorded: Mapping[str, Any], found: Mapping[str, float]) -> list[str]:
    """Metrics of which a run's result says something else than its predictions."""
    return [name for name, value in found.items() if name in recorded and not _is_alike(recorded[name], value)]


def _is_alike(recorded: Any, found: float) -> bool:
    """Whether two figures are the same; JSON has no word for what is not a finite number."""
    if not isinstance(recorded, int | float) or not math.isfinite(found):
        return recorded is None and not math.isfinite(found)
    return math.isclose(recorded, found, rel_tol=CLOSE, abs_tol=CLOSE)


def difference_of(found: Sequence[Predictions | TextScores]) -> str | None:
    """Why runs cannot be compared, None if they can: they must have been scored on the same things."""
    first = found[0]
    text = isinstance(first, TextScores)
    for names in SAME_TEXT if text else SAME_EXAMPLES:
        if not all(_have_same(other, first, names) for other in found[1:]):
            tokens = "split the documents into different tokens"
            return tokens if names == ("tokens",) else f"were scored on different {'documents' if text else 'examples'}"
    return None


def _have_same(one: Predictions | TextScores, other: Predictions | TextScores, names: Sequence[str]) -> bool:
    """Whether columns are alike; those of another kind are missing, and so differ."""
    for name in names:
        ours, theirs = getattr(one, name, ()), getattr(other, name, ())
        alike = ours == theirs if isinstance(ours, tuple) else np.array_equal(ours, theirs)
        if not alike:
            return False
    return True
