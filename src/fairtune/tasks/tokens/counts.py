"""How many tokens the examples of a split have: counted once for each tokenizer, kept in the cache as a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.cache import cached_json, key_of
from fairtune.core.stages import stage
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.task import TEXT_COLUMNS, Split
from fairtune.tasks.tokens.tokenization import BATCH, TokenizerFolder, tokenize

VERSION = 1
"""Raised whenever the same texts would give other counts."""
SAMPLE = 20_000
"""Most examples that are counted: a share of 5 % is then known to a third of a percentage point."""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """How many examples have how many tokens, special tokens included, nothing truncated.

    Args:
        lengths: each length that occurs, ascending.
        examples: how many examples have it.
        rows: examples of the whole split, of which a sample may have been counted.
    """

    lengths: Numbers
    examples: Numbers
    rows: int

    @property
    def n(self) -> int:
        return int(self.examples.sum())

    @property
    def sampled(self) -> bool:
        return self.n < self.rows

    @property
    def longest(self) -> int:
        return int(self.lengths[-1])

    @cached_property
    def coverage(self) -> npt.NDArray[np.float64]:
        """The share of examples that are no longer than each length."""
        return np.cumsum(self.examples) / self.n

    def covering(self, share: float) -> int:
        """The smallest length that this share of the examples does not exceed."""
        return int(self.lengths[np.searchsorted(self.coverage, share)])

    def cut(self, length: int) -> float:
        """The share of examples that are truncated at a length."""
        return int(self.examples[self.lengths > length].sum()) / self.n

    def lost(self, length: int) -> float:
        """The share of tokens that truncation at a length takes away."""
        over = np.maximum(self.lengths - length, 0)
        return float((over * self.examples).sum() / max(1, (self.lengths * self.examples).sum()))

    def truncated(self, length: int) -> Numbers:
        """The length of every example, truncated."""
        return np.repeat(np.minimum(self.lengths, length), self.examples)


def count_of(lengths: Numbers, rows: int | None = None) -> Counts:
    """Counts of examples with these lengths."""
    found, examples = np.unique(np.asarray(lengths, dtype=np.int64), return_counts=True)
    return Counts(found, examples, len(lengths) if rows is None else rows)


def token_counts(splits: list[Split], tokenizer: TokenizerFolder, most: int = SAMPLE) -> Counts:
    """Counts of some splits together, of a fixed sample where they have more than `most` examples."""
    key = key_of([VERSION, most, [split.identity for split in splits], tokenizer.identity()])
    kept = cached_json("lengths", key, lambda: _count(splits, tokenizer, most))
    return Counts(np.array(kept["lengths"]), np.array(kept["examples"]), kept["rows"])


def _count(splits: list[Split], tokenizer: TokenizerFolder, most: int) -> dict[str, Any]:
    whole = _together(splits)
    chosen = fixed_sample(whole, most)
    batches = (chosen.texts[start : start + BATCH] for start in range(0, len(chosen), BATCH))
    found = []
    with stage("counting tokens of texts", len(chosen)) as advance:
        for piece in tokenize(batches, tokenizer.load()):
            found.append(piece.lengths)
            advance(len(piece.lengths))
    counts = count_of(np.concatenate(found), len(whole))
    return {"rows": counts.rows, "lengths": counts.lengths.tolist(), "examples": counts.examples.tolist()}


def _together(splits: list[Split]) -> Split:
    import pyarrow as pa

    if len(splits) == 1:
        return splits[0]
    columns = [name for name in ("id", *TEXT_COLUMNS, "label") if name in splits[0].table.column_names]
    return Split(pa.concat_tables([split.table.select(columns) for split in splits]))
