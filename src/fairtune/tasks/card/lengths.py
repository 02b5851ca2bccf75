"""How long a task's examples are in a model's tokens, and what each choice of `max_length` cuts and costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.cache import cached_json, key_of
from fairtune.core.stages import stage
from fairtune.settings.sections import Train
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.task import TEXT_COLUMNS, Split, Task
from fairtune.tasks.tokens.encoded_splits import training_batches
from fairtune.tasks.tokens.tokenization import TokenizerFolder, tokenize

VERSION = 2
"""Raised whenever the same texts would give other counts."""
SAMPLE, HELDOUT_SAMPLE = 20_000, 5_000
"""Most examples that are counted: of 20,000 a share of 5 % is known to a third of a point. By held-out ones nothing is decided."""
BATCH_SIZE = int(Train().batch_size)
COVERAGE = 0.95
PERCENTILES = (50, 75, 90, 95, 99)
CHOICES = (64, 96, 128, 256, 512)
REFERENCE = 128
"""The choice whose cost is 1."""
SHORTEST = 8
"""What `auto` does not go below."""
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


def train_counts(task: Task, tokenizer: TokenizerFolder) -> Counts:
    return token_counts([task.splits["train"]], tokenizer)


def heldout_counts(task: Task, tokenizer: TokenizerFolder) -> Counts:
    """Validation and test together."""
    return token_counts([task.splits["validation"], task.splits["test"]], tokenizer, HELDOUT_SAMPLE)


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


def auto_length(train: Counts, positions: int | None) -> int:
    """What `max_length: auto` is: the smallest length that covers 95 % of the training examples, within the model's reach."""
    wanted = max(train.covering(COVERAGE), SHORTEST)
    return wanted if positions is None else min(wanted, positions)


@dataclass(frozen=True)
class Choice:
    """What training with a `max_length` means.

    Args:
        truncated: the share of training examples that are cut.
        heldout_truncated: likewise of validation and test.
        lost: the share of training tokens that are cut away.
        mean_tokens: tokens of a training example after that.
        cost: padded tokens of an epoch in batches of similar length, as fairtune makes them; 1 with `REFERENCE`.
    """

    max_length: int
    truncated: float
    heldout_truncated: float
    lost: float
    mean_tokens: float
    cost: float


@dataclass(frozen=True, eq=False)
class Lengths:
    """Lengths of a task's examples.

    Args:
        positions: the longest input that the model takes, where its config says so.
        heldout: validation and test together.
        coverage: the share of training examples that `covering` covers.
        choices: `covering` (or all that the model takes) and the usual ones, ascending, as far as the model takes them.
        beyond: the usual ones that it does not take.
    """

    task: str
    model: str
    positions: int | None
    train: Counts
    heldout: Counts
    coverage: float
    covering: int
    choices: tuple[Choice, ...]
    beyond: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "model": self.model,
            "positions": self.positions,
            "train": _counts_json(self.train),
            "validation_and_test": _counts_json(self.heldout),
            "coverage": self.coverage,
            "covering": self.covering,
            "auto": auto_length(self.train, self.positions),
            "cost_is_1_at": REFERENCE,
            "choices": [asdict(choice) for choice in self.choices],
            "beyond_the_model": list(self.beyond),
        }


def measure_lengths(
    task: Task, model: str, positions: int | None, tokenizer: TokenizerFolder, coverage: float = COVERAGE
) -> Lengths:
    """Count the tokens of a task's examples, and weigh the choices.

    Args:
        positions: the longest input that the model takes, where its config says so.
    """
    train, heldout = train_counts(task, tokenizer), heldout_counts(task, tokenizer)
    covering = train.covering(coverage)
    usable = [length for length in CHOICES if positions is None or length <= positions]
    unit = max(1, padded_tokens(train, REFERENCE))
    choices = tuple(
        Choice(
            max_length=length,
            truncated=train.cut(length),
            heldout_truncated=heldout.cut(length),
            lost=train.lost(length),
            mean_tokens=float(train.truncated(length).mean()),
            cost=padded_tokens(train, length) / unit,
        )
        for length in sorted({*usable, min(covering, positions or covering)})
    )
    beyond = tuple(length for length in CHOICES if length not in usable)
    return Lengths(task.name, model, positions, train, heldout, coverage, covering, choices, beyond)


def padded_tokens(counts: Counts, length: int) -> int:
    """Of an epoch in batches of similar length, each padded to its own longest example: what fairtune trains with."""
    lengths = counts.truncated(length)
    batches = training_batches(lengths, BATCH_SIZE, seed=0, epoch=0)
    return sum(len(batch) * int(lengths[batch].max()) for batch in batches)


def _counts_json(counts: Counts) -> dict[str, Any]:
    return {
        "n": counts.n,
        "rows": counts.rows,
        "sampled": counts.sampled,
        "percentiles": {str(share): counts.covering(share / 100) for share in PERCENTILES},
        "longest": counts.longest,
        "mean": float(counts.lengths.sum() / counts.n),
    }
