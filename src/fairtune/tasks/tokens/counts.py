"""How many tokens the examples of a split have: counted once for each tokenizer, and kept in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.cache import cached_json, key_of
from fairtune.core.stages import stage
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.task import TEXT_COLUMNS, Split
from fairtune.tasks.tokens.tokenization import TokenizerFolder, tokenize

VERSION = 2
"""Raised whenever the same texts would give other counts."""
SAMPLE = 20_000
"""Most examples that are counted: a share of 5 % is then known to a third of a percentage point."""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """How many tokens some examples have, special tokens included, nothing truncated.

    Args:
        lengths: of each example that was counted, ascending.
        rows: examples of the whole split, of which a sample may have been counted.
    """

    lengths: Numbers
    rows: int

    @property
    def n(self) -> int:
        return len(self.lengths)

    @property
    def sampled(self) -> bool:
        return self.n < self.rows

    @property
    def longest(self) -> int:
        return int(self.lengths[-1])

    def covering(self, share: float) -> int:
        """The smallest length that this share of the examples does not exceed."""
        return int(self.lengths[np.searchsorted(np.arange(1, self.n + 1) / self.n, share)])

    def cut(self, length: int) -> float:
        """The share of examples that are truncated at a length."""
        return float((self.lengths > length).mean())

    def lost(self, length: int) -> float:
        """The share of tokens that truncation at a length takes away."""
        return float(np.maximum(self.lengths - length, 0).sum() / max(1, self.lengths.sum()))

    def truncated(self, length: int) -> Numbers:
        """The length of every example, truncated."""
        return np.minimum(self.lengths, length)


def count_tokens(split: Split, tokenizer: Any, most: int = SAMPLE) -> Counts:
    """Counts of a split, of a fixed sample where it has more than `most` examples."""
    texts, found = fixed_sample(split, most).texts, []
    with stage("counting tokens of texts", len(texts)) as advance:
        for piece in tokenize(texts, tokenizer):
            found.append(piece.lengths)
            advance(len(piece.lengths))
    return Counts(np.sort(np.concatenate(found)), len(split))


def token_counts(splits: Sequence[Split], tokenizer: TokenizerFolder, most: int = SAMPLE) -> Counts:
    """Counts of some splits together, from the cache where they are in it."""

    def count() -> dict[str, Any]:
        import pyarrow as pa

        columns = [name for name in ("id", *TEXT_COLUMNS, "label") if name in splits[0].table.column_names]
        together = Split(pa.concat_tables([split.table.select(columns) for split in splits]))
        counts = count_tokens(together, tokenizer.load(), most)
        return {"lengths": counts.lengths.tolist(), "rows": counts.rows}

    key = key_of([VERSION, most, [split.identity for split in splits], tokenizer.identity()])
    kept = cached_json("lengths", key, count)
    return Counts(np.array(kept["lengths"]), kept["rows"])
