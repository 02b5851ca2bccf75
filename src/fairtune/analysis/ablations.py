"""What arms differ in by their methods: the time that counting passes predicts, and arms that lack one method of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairtune.analysis.results import Results


def step_factor(results: Results, arm: str) -> float:
    """How many times as long a step takes with the arm's methods, counted in passes, as the plan has it."""
    return float(results.plan["arms"][arm]["step_factor"])


def left_out_pairs(results: Results) -> list[tuple[str, str]]:
    """Arms with two methods or more, each with every other arm that has all of them but one, settings and order alike.

    The reference is not among the others: what is compared with it stands elsewhere.
    """
    return [
        (arm, other)
        for arm in results.arms
        for other in results.arms
        if arm != other != results.reference and left_out_method(results, arm, other) is not None
    ]


def left_out_method(results: Results, arm: str, other: str) -> str | None:
    """The one method of an arm that the other lacks; None if that is not the difference between them."""
    whole, part = results.methods(arm), results.methods(other)
    if not whole or not part or len(whole) != len(part) + 1:
        return None
    places = [place for place in range(len(whole)) if whole[:place] + whole[place + 1 :] == part]
    return next(iter(whole[places[0]])) if places else None
