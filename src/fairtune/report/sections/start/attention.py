"""The attention part of a card as tables: one row per projection, and maps of every head."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from fairtune.core.numbers import error_size, significant
from fairtune.report.init_cards import CHECKPOINT, Origin

PARTS = {"q": "query", "k": "key", "v": "value"}
LEVELS = 8
"""Shades of a map of heads, besides none."""
SMALL = 1e-4


@dataclass(frozen=True)
class LayerRow:
    """The queries or the keys of one attention layer, over their heads.

    Args:
        orthogonality_error: the worst head's; so is the direction error.
        logit_spread: the layer's, the mean over its heads; None where logits cannot be assigned to layers.
    """

    block: int
    part: str
    module: str
    changed: bool
    frozen: bool
    orthogonality_error: float
    direction_error: float
    row_norm: float
    row_norm_min: float
    row_norm_max: float
    checkpoint_row_norm: float
    row_space_cosine: float
    difference_norm: float
    logit_spread: float | None
    checkpoint_logit_spread: float | None


@dataclass(frozen=True)
class HeadMap:
    """One figure of every head.

    Args:
        rows: a name, then for each head its text and its shade from 0 to LEVELS.
    """

    title: str
    heads: int
    rows: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]


def layer_rows(attention: dict[str, Any] | None) -> list[LayerRow]:
    """A row for the queries and one for the keys of every attention layer."""
    entries = (attention or {}).get("layers") or []
    logits = _logits_by_layer(attention or {})
    return [_layer_row(entry, logits.get(entry["layer"], {})) for entry in entries]


def _layer_row(entry: dict[str, Any], logits: dict[str, Any]) -> LayerRow:
    return LayerRow(
        block=int(entry["block"]),
        part=PARTS.get(entry["part"], str(entry["part"])),
        module=str(entry["module"]),
        changed=bool(entry["changed"]),
        frozen=bool(entry["frozen"]),
        orthogonality_error=max(entry["orthogonality_error"]),
        direction_error=max(entry["direction_error"]),
        row_norm=fmean(entry["row_norm"]),
        row_norm_min=min(entry["row_norm_min"]),
        row_norm_max=max(entry["row_norm_max"]),
        checkpoint_row_norm=fmean(entry["checkpoint_row_norm"]),
        row_space_cosine=fmean(entry["row_space_cosine"]),
        difference_norm=sum(norm**2 for norm in entry["difference_norm"]) ** 0.5,
        logit_spread=_mean(logits.get("spread")),
        checkpoint_logit_spread=_mean(logits.get("checkpoint")),
    )


def _logits_by_layer(attention: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Logits by the name of their layer, matched in the order of the model, if each layer has its own."""
    names = list(dict.fromkeys(entry["layer"] for entry in attention.get("layers") or []))
    logits = attention.get("logits") or []
    if len(names) != len(logits) or any(not entry["layer"].startswith("attentions.") for entry in logits):
        return {}
    return dict(zip(names, logits, strict=True))


def spread_curves(attention: dict[str, Any] | None, field: str) -> dict[str, list[list[float]]]:
    """The spread of logits by sort of attention, then layer, then head.

    Args:
        field: `spread` at step 0, or `checkpoint`.
    """
    found: dict[str, list[list[float]]] = {}
    for entry in (attention or {}).get("logits") or []:
        if entry.get(field):
            found.setdefault(entry["layer"].rpartition(".")[0], []).append(list(entry[field]))
    return found


def head_maps(attention: dict[str, Any] | None, origin: Origin = CHECKPOINT) -> list[HeadMap]:
    """Maps of every head: logits, row norms, and where weights changed what became of their row spaces."""
    return [found for found in _maps(attention or {}, origin) if found.rows]


def _maps(attention: dict[str, Any], origin: Origin) -> Iterator[HeadMap]:
    entries = attention.get("layers") or []
    names = [f"{entry['block']} {PARTS.get(entry['part'], entry['part'])}" for entry in entries]
    logits = attention.get("logits") or []
    yield _map("Spread of attention logits", [e["layer"].removeprefix("attentions.") for e in logits], logits, "spread")
    yield _map("Row norm, the mean over a head's rows", names, entries, "row_norm")
    if any(entry["changed"] for entry in entries):
        yield _map(f"Cosine of the row spaces, now and in {origin.named}", names, entries, "row_space_cosine")
        yield _map("Orthogonality error", names, entries, "orthogonality_error")
        yield _map(f"Norm of the difference to {origin.named}", names, entries, "difference_norm")


def _map(title: str, names: Sequence[str], entries: Sequence[dict[str, Any]], field: str) -> HeadMap:
    rows = [list(entry[field]) for entry in entries]
    shade = _shades([value for row in rows for value in row])
    show = error_size if field == "orthogonality_error" else significant
    cells = (tuple((show(value), shade(value)) for value in row) for row in rows)
    return HeadMap(title, max(map(len, rows), default=0), tuple(zip(names, cells, strict=True)))


def _shades(values: Sequence[float]) -> Callable[[float], int]:
    """From the least value to the greatest; by orders of magnitude where one head would leave the others without shade."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if high < SMALL or high - low < SMALL * high:
        return lambda _: 0  # differences of rounding are no pattern to look at
    if low > 0 and high > 5 * low:
        return lambda value: round(LEVELS * math.log(value / low) / math.log(high / low))
    return lambda value: round(LEVELS * (value - low) / (high - low))


def _mean(values: Sequence[float] | None) -> float | None:
    return fmean(values) if values else None
