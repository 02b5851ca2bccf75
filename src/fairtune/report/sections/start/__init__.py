"""What each arm started from, beside the checkpoint or fresh weights, and the proof that what it froze stayed as it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairtune.core.markdown import (
    heading,
    items,
    plain,
    table,
)
from fairtune.core.numbers import DASH, error_size, significant
from fairtune.report.content import Evidence, Header, ReportContent
from fairtune.report.figures.widths import both_widths
from fairtune.report.init_cards import CardSummary, Origin, origin_of
from fairtune.report.section import ReportSection
from fairtune.report.sections.start.attention import head_maps, layer_rows

HEADS = (
    "arm", "worst orthogonality error", "worst direction error", "row norm", "in ORIGIN", "cosine of row spaces",
    "spread of logits", "in ORIGIN", "frozen tensors proven unchanged",
)  # fmt: skip


@dataclass(frozen=True)
class Starts:
    """One card per arm that has a finished run, and how to read them."""

    cards: tuple[CardSummary, ...]
    notes: tuple[str, ...]


def gather(evidence: Evidence) -> Starts:
    return Starts(evidence.cards, starting_notes(evidence.header, evidence.cards))


def starting_notes(header: Header, cards: Sequence[CardSummary]) -> tuple[str, ...]:
    """How to read what the arms started from."""
    notes, origin = [], origin_of(header.from_scratch)
    if any(card.geometry for card in cards):
        notes += [
            "The error of orthogonality is the largest entry of |W Wᵀ − I| of any head, over the query and key "
            "projections that the arm changed, or all of them if it changed none; the error of direction is the same "
            "with every row scaled to norm 1. The other figures are means over all heads.",
            f"A cosine of 1 means that the heads read the same directions of their input as {origin.whose} do.",
        ]
    if any(card.proof for card in cards):
        notes.append(
            "Frozen tensors were compared with step 0 after training, bit for bit; a run in which one changed fails."
        )
    return tuple(notes)


def markdown(starts: Starts, report: ReportContent) -> Iterator[str]:
    yield from heading("What each arm started from")
    origin = origin_of(report.header.from_scratch)
    if report.header.from_scratch:
        yield f"{origin.compared}, at step 0, in the first finished run of each arm."
        yield ""
    yield from items((_card_line(card, origin) for card in starts.cards), "No run is finished.")
    if any(card.attention for card in starts.cards):
        yield ""
        heads = [head.replace("ORIGIN", origin.named) for head in HEADS]
        yield from table(heads, [_cells(card) for card in starts.cards])
        yield ""
        yield from items(map(plain, starts.notes))


def _cells(card: CardSummary) -> list[str]:
    errors = [error_size(card.geometry.get(f"worst_{part}_error")) for part in ("orthogonality", "direction")]
    names = ("row_norm", "checkpoint_row_norm", "row_space_cosine", "logit_spread", "checkpoint_logit_spread")
    proof = f"{card.proof.tensors} (n = {card.proof.runs})" if card.proof else DASH if card.frozen else "none frozen"
    return [plain(card.arm), *errors, *(significant(card.geometry.get(name)) for name in names), proof]


def _card_line(card: CardSummary, origin: Origin) -> str:
    return (
        f"**{plain(card.arm)}** (seed {card.seed}): {card.same} tensors equal {origin.whose} bit for bit, "
        f"{len(card.changed)} changed, {len(card.new)} new, {len(card.unverified)} not verified, "
        f"{len(card.frozen)} frozen."
    )


def names(starts: Starts, report: ReportContent) -> dict[str, Any]:
    arms = [row.arm for row in report.rows]
    figure = both_widths("start.figure:spread_svg", starts.cards, arms, report.header.from_scratch)
    return {
        "spread_figure": figure,
        "layer_rows": layer_rows,
        "head_maps": head_maps,
    }


SECTION = ReportSection(
    __name__,
    gather,
    markdown,
    names,
    json=lambda starts: {"cards": starts.cards, "starting_notes": starts.notes},
    folded=True,
)
