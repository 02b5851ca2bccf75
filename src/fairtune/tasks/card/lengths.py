"""How long a task's examples are in a model's tokens, and what each choice of `max_length` cuts and costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.core.errors import DataError
from fairtune.core.files import read_json
from fairtune.settings.sections import Train
from fairtune.tasks.task import Task
from fairtune.tasks.tokens.counts import Counts, Numbers, token_counts
from fairtune.tasks.tokens.encoded_splits import training_batches
from fairtune.tasks.tokens.tokenization import TokenizerFolder

BATCH_SIZE = int(Train().batch_size)
HIDDEN = ("hidden_size", "d_model", "dim", "n_embd")
"""What architectures call the width of their layers."""
INNER = ("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "hidden_dim", "n_inner")
"""Likewise of their feed-forward parts."""
COVERAGE = 0.95
PERCENTILES = (50, 75, 90, 95, 99)
CHOICES = (64, 96, 128, 256, 512)
REFERENCE = 128
"""The choice whose cost in batches of similar length is 1."""
HELDOUT_SAMPLE = 5_000
"""Most examples of validation and test that are counted: nothing is decided by them, they only show whether they differ."""
SHORTEST = 8
"""What `auto` does not go below."""


@dataclass(frozen=True)
class Products:
    """Matrix products of one layer, forward; all layers and the backward pass multiply them by the same number."""

    hidden: int
    inner: int

    def flops(self, width: Numbers) -> Numbers:
        """Of a sequence of `width` tokens: four projections, two feed-forward products, and attention's two, which are
        quadratic in the width."""
        linear = 8 * self.hidden**2 + 4 * self.hidden * self.inner
        return width * linear + 4 * self.hidden * width**2


@dataclass(frozen=True)
class Cost:
    """Of an epoch, in all or beside that of another choice. Without the model's sizes, `flops` is None."""

    tokens: float
    flops: float | None

    def beside(self, other: Cost) -> Cost:
        flops = None if self.flops is None or other.flops is None else self.flops / max(1, other.flops)
        return Cost(self.tokens / max(1, other.tokens), flops)


def grouped_cost(counts: Counts, length: int, products: Products | None) -> Cost:
    """In batches of similar length, each padded to its own longest example: what fairtune trains with."""
    lengths = counts.truncated(length)
    batches = training_batches(lengths, BATCH_SIZE, seed=0, epoch=0)
    return _cost(np.repeat([lengths[batch].max() for batch in batches], list(map(len, batches))), products)


def padded_cost(counts: Counts, length: int, products: Products | None) -> Cost:
    """With every example padded to the length: what many scripts do."""
    return _cost(np.full(counts.n, length), products)


def _cost(widths: Numbers, products: Products | None) -> Cost:
    return Cost(int(widths.sum()), None if products is None else int(products.flops(widths).sum()))


def model_products(folder: Path) -> Products | None:
    """From a model's config; None where it does not name its sizes."""
    config = read_json(folder / "config.json") or {}
    hidden = config_size(config, HIDDEN)
    return None if hidden is None else Products(hidden, config_size(config, INNER) or 4 * hidden)


def config_size(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """A size in a config, by the first of some names that it has."""
    return next((value for name in names if isinstance(value := config.get(name), int) and value > 0), None)


@dataclass(frozen=True)
class Choice:
    """What training with a `max_length` means.

    Args:
        truncated: the share of training examples that are cut.
        heldout_truncated: likewise of validation and test.
        lost: the share of training tokens that are cut away.
        mean_tokens: tokens of a training example after that.
        grouped: cost in batches of similar length, as fairtune makes them.
        padded: cost when every example is padded to `max_length`.
    """

    max_length: int
    truncated: float
    heldout_truncated: float
    lost: float
    mean_tokens: float
    grouped: Cost
    padded: Cost


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
        tokenizer: the model's; what the choices cost follows from the config in its folder.

    Raises:
        DataError: the coverage is not a share.
    """
    check_coverage(coverage)
    train, heldout = train_counts(task, tokenizer), heldout_counts(task, tokenizer)
    covering = train.covering(coverage)
    usable = [length for length in CHOICES if positions is None or length <= positions]
    products = model_products(tokenizer.folder)
    unit = grouped_cost(train, REFERENCE, products)
    choices = tuple(
        Choice(
            max_length=length,
            truncated=train.cut(length),
            heldout_truncated=heldout.cut(length),
            lost=train.lost(length),
            mean_tokens=float(train.truncated(length).mean()),
            grouped=grouped_cost(train, length, products).beside(unit),
            padded=padded_cost(train, length, products).beside(unit),
        )
        for length in sorted({*usable, min(covering, positions or covering)})
    )
    beyond = tuple(length for length in CHOICES if length not in usable)
    return Lengths(task.name, model, positions, train, heldout, coverage, covering, choices, beyond)


def train_counts(task: Task, tokenizer: TokenizerFolder) -> Counts:
    return token_counts([task.splits["train"]], tokenizer)


def heldout_counts(task: Task, tokenizer: TokenizerFolder) -> Counts:
    """Validation and test together."""
    return token_counts([task.splits["validation"], task.splits["test"]], tokenizer, HELDOUT_SAMPLE)


def check_coverage(coverage: float) -> None:
    """Refuse what is not a share.

    Raises:
        DataError: saying what is allowed.
    """
    if not 0 < coverage <= 1:
        raise DataError(f"coverage: found {coverage:g}; allowed: a share above 0 and up to 1, such as {COVERAGE:g}.")


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
