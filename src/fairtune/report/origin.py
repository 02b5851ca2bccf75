"""What an arm's start is compared with, in words: a checkpoint's file, or the weights that a seed draws."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """Words for what stands before any method.

    Args:
        name: short, at the head of a column.
        named: in a sentence.
        whose: its heads, in a sentence.
        compared: how the comparison was made.
    """

    name: str
    named: str
    whose: str
    compared: str


CHECKPOINT = Origin("checkpoint", "the checkpoint", "the checkpoint's", "Compared with the checkpoint's own file")
FRESH = Origin(
    "fresh weights",
    "the fresh weights",
    "those of the fresh weights",
    "The model is trained from scratch: there is no checkpoint. Compared with the fresh weights of this seed, drawn once more",
)


def origin_of(from_scratch: bool) -> Origin:
    return FRESH if from_scratch else CHECKPOINT
