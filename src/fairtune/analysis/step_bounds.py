"""What a step can cost at the least: bounds from counted matrix products, and what counting passes predicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

WORK = ("model", "batch_size", "accumulate", "examples", "max_length", "precision")
"""Settings that decide the work of a step; arms that differ in one have no common bound."""


def same_work(train: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a plain step does the same work with both settings."""
    return all(train.get(name) == other.get(name) for name in WORK)


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


def lowest_ratio(
    ours: float | None, theirs: float | None, train: Mapping[str, Any], other: Mapping[str, Any]
) -> float | None:
    """The lowest ratio of step times that matrix products allow; None if it is not known.

    Args:
        ours, theirs: operations of a forward and a backward pass, per token.
        train, other: settings of the two arms.
    """
    if not ours or not theirs or not same_work(train, other):
        return None
    return ours / theirs


def flops_of(costs: Mapping[str, Any] | None) -> float | None:
    """Operations of a forward and a backward pass, per token, as a card has them."""
    found = (costs or {}).get("flops_per_token")
    return float(found["forward"]) + float(found["backward"]) if found else None


def lowest_with_optimizer(bound: float, parts: Mapping[str, float], trainable: float) -> float:
    """The lowest ratio that matrix products and the optimizer's updates together allow.

    Args:
        bound: what matrix products alone allow.
        parts: seconds of a step's parts, of the arm that is compared with.
        trainable: parameters that are trained, as a multiple of that arm's.
    """
    passes, updates = parts.get("forward", 0.0) + parts.get("backward", 0.0), parts.get("optimizer", 0.0)
    if not passes:
        return bound
    return min(bound, (passes * bound + updates * trainable) / (passes + updates))


@dataclass(frozen=True)
class ClaimCheck:
    """A stated speed-up beside what matrix products allow.

    Args:
        stated: how many times as fast a step is said to be.
        before, after: operations of a step per token, without and with the arm's methods.
        frozen: share of the parameters that the optimizer no longer updates.
        counted_on: where the model's sizes come from, and the length of the texts.
    """

    model: str
    arm: str
    stated: float
    before: float
    after: float
    frozen: float
    counted_on: str

    @property
    def allowed(self) -> float:
        """The most that the difference in matrix products can make of it; below 1 where there are more of them."""
        return self.before / self.after

    @property
    def needed(self) -> float:
        """The share of a step that the stated speed-up saves."""
        return 1 - 1 / self.stated

    @property
    def savable(self) -> float:
        """The share of a step that fewer matrix products can save; negative where there are more of them."""
        return 1 - 1 / self.allowed

    @property
    def possible(self) -> bool:
        return self.stated <= self.allowed

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        return {
            **found,
            "allowed": self.allowed,
            "needed_share": self.needed,
            "savable_share": self.savable,
            "possible": self.possible,
        }

    def lines(self) -> list[str]:
        """The answer first, then what it rests on."""
        return [self._answer(), *self._reasons()]

    def _answer(self) -> str:
        claim = f"{self.stated:g}x for {self.arm} on {self.model}"
        if self.possible:
            return (
                f"Possible: {claim} has to save {100 * self.needed:.1f} % of a step, and its matrix products allow "
                f"{100 * self.savable:.1f} % "
                f"({self.allowed:.3f}x). Whether it is reached, only a timing experiment tells: `fairtune time STUDY`."
            )
        if self.savable <= 0:
            return (
                f"Not possible: {claim} has to save {100 * self.needed:.1f} % of a step, and a step has no fewer matrix "
                "products than "
                f"without the arm's methods, but {self.after / self.before:.2f} times as many."
            )
        return (
            f"Not possible: {claim} has to save {100 * self.needed:.1f} % of a step, {self.needed / self.savable:.1f} "
            "times as much as its "
            f"matrix products allow ({100 * self.savable:.1f} %, which is {self.allowed:.3f}x)."
        )

    def _reasons(self) -> list[str]:
        counts = (
            f"A training step has {self.before / 1e6:,.1f} MFLOP of matrix products per token without the arm's methods and "
            f"{self.after / 1e6:,.1f} with them, counted on {self.counted_on}."
        )
        if self.frozen <= 0:
            return [counts]
        return [
            counts,
            f"Besides, the optimizer leaves {100 * self.frozen:.1f} % of the parameters alone, which saves at most that "
            "share of its updates, "
            "a small part of a step unless batches are tiny. A measured ratio beyond both comes from something else: other "
            "batches, another precision, a busy machine, or work that was left out.",
        ]
