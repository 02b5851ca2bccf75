"""How long a task's examples are in a model's tokens, and what each choice of `max_length` cuts and costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fairtune.settings.sections import Train
from fairtune.tasks.task import Task
from fairtune.tasks.tokens.counts import Counts, token_counts
from fairtune.tasks.tokens.encoded_splits import training_batches
from fairtune.tasks.tokens.tokenization import TokenizerFolder

BATCH_SIZE = int(Train().batch_size)
COVERAGE = 0.95
PERCENTILES = (50, 75, 90, 95, 99)
CHOICES = (64, 96, 128, 256, 512)
REFERENCE = 128
"""The choice whose cost is 1."""
HELDOUT_SAMPLE = 5_000
"""Most examples of validation and test that are counted: nothing is decided by them, they only show whether they differ."""
SHORTEST = 8
"""What `auto` does not go below."""


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


def train_counts(task: Task, tokenizer: TokenizerFolder) -> Counts:
    return token_counts([task.splits["train"]], tokenizer)


def heldout_counts(task: Task, tokenizer: TokenizerFolder) -> Counts:
    """Validation and test together."""
    return token_counts([task.splits["validation"], task.splits["test"]], tokenizer, HELDOUT_SAMPLE)


def auto_length(train: Counts, positions: int | None) -> int:
    """What `max_length: auto` is: the smallest length that covers 95 % of the training examples, within the model's reach."""
    wanted = max(train.covering(COVERAGE), SHORTEST)
    return wanted if positions is None else min(wanted, positions)


def _counts_json(counts: Counts) -> dict[str, Any]:
    return {
        "n": counts.n,
        "rows": counts.rows,
        "sampled": counts.sampled,
        "percentiles": {str(share): counts.covering(share / 100) for share in PERCENTILES},
        "longest": counts.longest,
        "mean": float(counts.lengths.sum() / counts.n),
    }
