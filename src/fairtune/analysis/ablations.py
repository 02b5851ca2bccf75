"""Arms that lack one method of another: what each method of a combination is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Methods = Sequence[Mapping[str, Any]]
"""An arm's methods as a plan has them: each by its name with all its settings."""


def left_out_pairs(arms: Mapping[str, Methods], reference: str) -> list[tuple[str, str]]:
    """Arms with two methods or more, each with every other arm that has all of them but one, in the same order.

    The reference is not among the others: what is compared with it stands elsewhere.
    """
    return [
        (arm, other)
        for arm in arms
        for other in arms
        if arm != other != reference and left_out_method(arms[arm], arms[other]) is not None
    ]


def left_out_method(whole: Methods, part: Methods) -> str | None:
    """The one method of an arm that the other lacks; None if that is not the difference between them."""
    if not whole or not part or len(whole) != len(part) + 1:
        return None
    places = [place for place in range(len(whole)) if [*whole[:place], *whole[place + 1 :]] == list(part)]
    return next(iter(whole[places[0]])) if places else None
