"""Runs for whose batches memory ran out, so that they went through the model in parts: which, and what that means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

from fairtune.analysis.ledger_runs import LedgerRun
from fairtune.core.cautions import Caution
from fairtune.core.numbers import plural

Sizes = Counter[int | None]


class PartedResults(Protocol):
    """What is looked at."""

    @property
    def arms(self) -> Sequence[str]: ...
    def finished(self, arm: str) -> Sequence[LedgerRun]: ...


def cut_sizes(results: PartedResults) -> dict[str, Sizes]:
    """By arm, how many finished runs had at most so many examples go through the model at once; None is whole batches."""
    return {arm: Counter(map(_size, runs)) for arm in results.arms if (runs := results.finished(arm))}


def cut_cautions(results: PartedResults) -> Iterator[Caution]:
    """Runs that were cut beside runs that were not, or not so far."""
    found = cut_sizes(results)
    if len({size for sizes in found.values() for size in sizes}) < 2:
        return
    differs = len({frozenset(sizes) for sizes in found.values()}) > 1
    yield Caution(
        "warning" if differs else "note",
        "cut-batches",
        f"memory ran out for some batches, which then went through the model in parts ({_told(found)})",
        "a step learned from the same examples, but dropout was drawn and sums were rounded otherwise, and times of runs that were "
        "cut differently do not compare",
        "Give all arms a smaller `batch_size` with a larger `accumulate`, or `gradient_checkpointing: true`",
    )


def cut_notes(results: PartedResults) -> list[str]:
    """For who reads what runs took."""
    found = cut_sizes(results)
    if not any(size is not None for sizes in found.values() for size in sizes):
        return []
    return [f"Memory ran out for whole batches, and parts take longer: {_told(found)}."]


def _told(found: dict[str, Sizes]) -> str:
    parts = []
    for arm, sizes in found.items():
        own = [f"{count} with {_words(size)}" for size, count in sorted(sizes.items(), key=lambda item: item[0] or 0)]
        parts.append(f"{arm}: {', '.join(own)}")
    return "; ".join(parts)


def _words(size: int | None) -> str:
    return "whole batches" if size is None else f"at most {plural(size, 'example')} at once"


def _size(run: LedgerRun) -> int | None:
    size = run.result.get("micro_batch")
    return size if isinstance(size, int) else None
