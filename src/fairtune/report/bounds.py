"""What an arm's step can take: the bound that matrix products set, and what counting passes predicts, beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairtune.core.numbers import ratio
from fairtune.report.content import Header, Versus
from fairtune.report.spread import Spread
from fairtune.report.starting import CardSummary

WORK = ("model", "batch_size", "accumulate", "examples", "max_length", "precision")
"""Settings that decide the work of a step; arms that differ in one have no common bound."""


def expected_ratio(
    ours: float | None, theirs: float | None, train: Mapping[str, Any], other: Mapping[str, Any]
) -> float | None:
    """The ratio of step times that counting passes predicts; None where a step's work differs in more than passes.

    Args:
        ours, theirs: passes of a step with the arms' methods, as a multiple of a plain step's.
        train, other: settings of the two arms.
    """
    if ours is None or theirs is None or not same_work(train, other):
        return None
    return ours / theirs


def same_work(train: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a plain step does the same work with both settings."""
    return all(train.get(name) == other.get(name) for name in WORK)


def lowest_ratio(
    ours: CardSummary | None, theirs: CardSummary | None, train: Mapping[str, Any], other: Mapping[str, Any]
) -> float | None:
    """The lowest ratio of step times that matrix products allow; None if it is not known.

    Args:
        train, other: settings of the two arms.
    """
    if ours is None or theirs is None or not ours.flops_per_token or not theirs.flops_per_token:
        return None
    if not same_work(train, other):
        return None
    return ours.flops_per_token / theirs.flops_per_token


def beats(slowdown: Spread | None, bound: float | None) -> bool:
    """Whether even the slowest run was faster than the bound allows."""
    return slowdown is not None and bound is not None and slowdown.high < bound


def bound_notes(header: Header, comparisons: Iterable[Versus]) -> list[str]:
    """What the bound counts, and a caution for every measured ratio that beats it."""
    found = list(comparisons)
    notes = []
    if any(versus.bound is not None for versus in found):
        notes.append(
            f"The bound is the lowest ratio to {header.reference} that matrix products allow, counted at step 0 for one "
            "forward and one backward pass. It counts nothing else: what a frozen tensor saves the optimizer can add a "
            "little, and time spent on anything else draws the ratio towards 1."
        )
    if any(versus.bound is None and versus.slowdown is not None for versus in found):
        notes.append(
            "An arm without a bound differs from the reference in the work of a step "
            f"({', '.join(WORK)}, passes through the model), or its runs were recorded without counting."
        )
    if any(versus.expected not in (None, 1) for versus in found):
        notes.append(
            "The expected ratio counts the passes through the model that an arm's methods make; a pass without gradients of "
            "weights counts two thirds. Clipping and the optimizer's update are done once however many passes there are, so "
            "less than the expected ratio is usual."
        )
    return notes + [_caution(versus, versus.slowdown) for versus in found if versus.slowdown and versus.beats_bound]


def _caution(versus: Versus, seen: Spread) -> str:
    runs = (
        "in its one paired run"
        if seen.n == 1
        else f"({ratio(seen.low)} to {ratio(seen.high)} over {seen.n} seeds), even in its slowest run"
    )
    return (
        f"Faster than its bound allows: {versus.arm} took {ratio(seen.median)} of {versus.reference}'s time a step {runs}, and "
        f"matrix products allow {ratio(versus.bound)} at the lowest. So something besides them differed: other work on a "
        "shared machine, padding of the batches, or updates that the optimizer saved. Do not report it as the method's "
        "speed-up; time both arms again on an idle machine, in crossover order, with more seeds and steps."
    )
