"""Whether the reference beats the simple baselines of its study: what every report has to begin with, if it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from fairtune.analysis.arm_pairs import SIMPLE, Comparison
from fairtune.analysis.scales import relative, scale_of
from fairtune.analysis.study_facts import StudyFacts
from fairtune.analysis.verdicts import BETTER, EQUIVALENT, INFERIOR, NOT_INFERIOR, WORSE
from fairtune.core.cautions import Caution
from fairtune.core.numbers import listed, low_to_high
from fairtune.settings.learners import MAJORITY, Learner
from fairtune.settings.metrics import METRICS

BEATEN = (WORSE, INFERIOR)
"""Verdicts on a simple baseline by which the reference is shown to be better."""
JUDGED = {
    "is worse than": "is better",
    "does not beat": "is as good as far as these runs can tell",
    "is not shown to beat": "may be as good",
}
"""How the reference stands to a simple baseline, and what that says of it; the gravest first."""


class ComparedResults(StudyFacts, Protocol):
    """What it takes besides."""

    @property
    def comparisons(self) -> list[Comparison]: ...


def unbeaten(results: ComparedResults) -> list[tuple[Learner, Comparison]]:
    """Simple baselines that the reference is not shown to beat; of the most frequent class more is said elsewhere."""
    if results.learner(results.reference) is not None:
        return []
    found = [(results.learner(c.arm), c) for c in results.comparisons if c.role == SIMPLE]
    return [
        (learner, c)
        for learner, c in found
        if learner is not None
        and not learner.trained
        and learner.name != MAJORITY
        and c.reference == results.reference
        and c.difference is not None
        and c.verdict.word not in BEATEN
    ]


def find_unbeaten(results: ComparedResults) -> Iterator[Caution]:
    """One caution about all simple baselines that the reference does not beat."""
    found = unbeaten(results)
    if not found:
        return
    sign = -1 if METRICS[results.metric].lower_is_better else 1
    words: dict[str, list[str]] = {how: [] for how in JUDGED}
    for _, c in found:
        words[_beaten(c, sign)].append(_named(results.metric, c))
    parts = [f"{how} {listed(names, 'or')}" for how, names in words.items() if names]
    learner, best = max(found, key=lambda one: sign * (one[1].difference or 0.0))
    yield Caution(
        "warning",
        "not-above-baseline",
        f"{results.reference} {' and '.join(parts)}",
        f"{learner.short} ({best.arm}) {JUDGED[_beaten(best, sign)]}, in seconds",
        f"Train {results.reference} longer or with another learning rate; report {best.arm} beside whatever a method gains",
    )


def _beaten(found: Comparison, sign: int) -> str:
    """How the reference stands to a simple baseline that it is not shown to be better than."""
    if found.verdict.word == BETTER:
        return "is worse than"
    level = sign * (found.difference or 0.0) >= 0 or found.verdict.word in (EQUIVALENT, NOT_INFERIOR)
    return "does not beat" if level else "is not shown to beat"


def _named(metric: str, found: Comparison) -> str:
    """A simple baseline with its difference: tfidf (+2.1 points for tfidf, −0.4 to +4.6, n = 5)."""
    scale, base = scale_of(metric), found.means[1]
    low, high = found.alone

    def show(value: float | None) -> str:
        return relative(value, base) if scale.plain else scale.signed(value)

    unit = "" if scale.plain else " points"
    interval = "" if low is None else f", {low_to_high(low, high, show)}"
    return f"{found.arm} ({show(found.difference)}{unit} for {found.arm}{interval}, n = {found.found.n})"
