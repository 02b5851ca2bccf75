"""What an arm started from, by its run's card: beside a checkpoint's file, or the weights that a seed draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtune.analysis.results import LedgerRun
from fairtune.core.files import read_json


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


NEEDED = {"same", "new", "unverified", "frozen", "changed", "parameters"}


@dataclass(frozen=True)
class Proof:
    """Frozen tensors that were bit-equal to step 0 when training ended.

    Args:
        tensors: how many, in one run.
        runs: finished runs that proved it.
    """

    tensors: int
    runs: int


@dataclass(frozen=True)
class CardSummary:
    """What an arm started from, by its first finished run.

    Args:
        attention: each layer's and head's geometry and the spread of attention logits, or why they are not known.
        costs: bytes of gradients and optimizer state, and matrix products per token.
        proof: None if nothing is frozen, or no run says.
    """

    arm: str
    seed: int
    same: int
    new: tuple[str, ...]
    unverified: tuple[str, ...]
    frozen: tuple[str, ...]
    changed: tuple[dict[str, Any], ...]
    parameters: dict[str, float]
    attention: dict[str, Any] | None
    costs: dict[str, Any]
    proof: Proof | None

    @property
    def geometry(self) -> dict[str, Any]:
        """The attention in a few figures; empty if it is not known."""
        return dict((self.attention or {}).get("summary") or {})

    @property
    def problem(self) -> str | None:
        """Why the attention is not known, if it is not."""
        return (self.attention or {}).get("problem")

    @property
    def flops_per_token(self) -> float | None:
        """Matrix products of one forward and backward pass."""
        flops = self.costs.get("flops_per_token")
        return float(flops["forward"] + flops["backward"]) if flops else None

    @property
    def saved_bytes(self) -> int | None:
        """Gradients and optimizer state that frozen parameters do not need."""
        saved = [self.costs.get(f"{part}_bytes_saved") for part in ("gradient", "optimizer")]
        return None if None in saved else sum(int(part) for part in saved if part is not None)


def read_card(finished: list[LedgerRun]) -> CardSummary | None:
    """The card of the first of an arm's finished runs that has one."""
    for run in finished:
        card = read_json(run.folder.card)
        if card is not None and card.keys() >= NEEDED:
            return CardSummary(
                run.arm, run.seed, int(card["same"]), tuple(card["new"]), tuple(card["unverified"]),
                tuple(card["frozen"]), tuple(card["changed"]), dict(card["parameters"]),
                card.get("attention"), card.get("costs") or {}, _proof(finished),
            )  # fmt: skip
    return None


def _proof(finished: list[LedgerRun]) -> Proof | None:
    found = [run.result.get("frozen") or {} for run in finished]
    proven = [int(frozen["tensors"]) for frozen in found if frozen.get("unchanged") and frozen.get("tensors")]
    return Proof(min(proven), len(proven)) if proven else None
