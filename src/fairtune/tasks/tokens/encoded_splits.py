"""A task's splits as token ids, and batches of them.

Ids are made once, kept in the cache, and mapped into memory by every run that trains on them. Batches are of similar
length, so that there is little padding; a seed decides their order, the same for every arm.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.cache import cached, key_of
from fairtune.core.stages import stage
from fairtune.settings.few_labels import Examples, FewLabels, is_resampled
from fairtune.tasks.reading.rows import open_table, write_batches
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.task import SPLITS, Labels, Split, Task
from fairtune.tasks.tokens.tokenization import mapped, token_dtype, tokenize, tokenizer_identity

VERSION = 2
"""Raised whenever the same texts would give other tokens, or another file."""
TOKENS, TYPES, EXAMPLES = "tokens.bin", "types.bin", "examples.arrow"
Tokens = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Indices = npt.NDArray[np.int64]
Arrays = dict[str, npt.NDArray[np.int64]]
WINDOW = 200
"""Batches in a window that is sorted by length, at least, where an epoch has as many. Larger pads less; smaller mixes better."""
MOST_CORRELATION, REDRAWS = 0.2, 20
"""Adjacent batches may correlate in length by this much; an order that exceeds it is drawn again."""
FEW, BATCH_COST = 20_000, 0.045
"""Examples up to which batches are cut where it is cheapest, beyond which they pad little anyhow; and what a batch costs besides
its tokens, as a share of a full one: measured on a CPU."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Examples as tokens; example i has the ids `tokens[starts[i]:starts[i + 1]]`.

    Args:
        types: token_type_ids where the model has them and the examples are pairs.
        names: the examples' ids, an Arrow column.
    """

    tokens: Tokens
    types: npt.NDArray[np.int8] | None
    starts: npt.NDArray[np.int64]
    labels: Labels
    names: Any
    padding: int

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        return np.diff(self.starts)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.names.to_pylist())

    def take(self, rows: npt.NDArray[np.int64]) -> Encoded:
        """Some of the examples, in the given order."""
        places = np.concatenate([np.arange(self.starts[row], self.starts[row + 1]) for row in rows])
        return Encoded(
            tokens=self.tokens[places],
            types=None if self.types is None else self.types[places],
            starts=np.concatenate([[0], np.cumsum(self.lengths[rows])]).astype(np.int64),
            labels=self.labels[rows],
            names=self.names.take(rows),
            padding=self.padding,
        )


def encode(split: Split, tokenizer: Any, max_length: int) -> Encoded:
    """A split as tokens, without the cache."""
    with tempfile.TemporaryDirectory() as folder:
        dtype = token_dtype(tokenizer)
        _write(Path(folder), split, tokenizer, max_length, dtype)
        return _open(Path(folder), dtype, tokenizer.pad_token_id)  # stays mapped when the files' names are gone


def encode_task(
    task: Task,
    tokenizer: Any,
    max_length: int,
    sizes: Mapping[str, Examples | None] | None = None,
    seed: int | None = None,
) -> dict[str, Encoded]:
    """All splits as tokens, from the cache where they are in it.

    A sample of few labels that a seed drew is tokenised where it is needed: that takes less time than to look for it, and the
    cache would fill with samples.

    Args:
        sizes: how many examples of a split, where not all: its fixed sample.
        seed: draws the samples that differ from seed to seed.
    """
    identity, dtype = [tokenizer_identity(tokenizer), tokenizer.pad_token_id], token_dtype(tokenizer)

    def encoded(split: Split, size: Examples | None) -> Encoded:
        if is_resampled(size):
            assert seed is not None, "each seed has its own sample"
            return encode(fixed_sample(split, size, seed), tokenizer, max_length)
        few = size.per_class if isinstance(size, FewLabels) else None
        most = min(size, len(split)) if isinstance(size, int) else len(split)
        return cached(
            "tokens",
            key_of([VERSION, split.identity, few, most, identity, max_length]),
            lambda folder: _write(folder, fixed_sample(split, size), tokenizer, max_length, dtype),
            lambda folder: _open(folder, dtype, tokenizer.pad_token_id),
        )

    return {name: encoded(task.splits[name], (sizes or {}).get(name)) for name in SPLITS}


def _write(folder: Path, split: Split, tokenizer: Any, max_length: int, dtype: np.dtype[Any]) -> None:
    """Tokens as they come; then what is known of each example."""
    import pyarrow as pa

    lengths = [np.zeros(0, np.int64)]
    with (
        (folder / TOKENS).open("wb") as tokens,
        (folder / TYPES).open("wb") as types,
        stage("tokenising texts", len(split)) as advance,
    ):
        for piece in tokenize(split.texts, tokenizer, max_length):
            tokens.write(piece.tokens.astype(dtype).data)
            if piece.types is not None:
                types.write(piece.types.data)
            lengths.append(piece.lengths)
            advance(len(piece.lengths))
    if not (folder / TYPES).stat().st_size:
        (folder / TYPES).unlink()
    known = {"id": split.table.column("id"), "label": split.labels, "length": np.concatenate(lengths)}
    write_batches(folder / EXAMPLES, pa.table(known).to_batches())


def _open(folder: Path, dtype: np.dtype[Any], padding: int) -> Encoded:
    examples = open_table(folder / EXAMPLES)
    starts = np.concatenate([[0], np.cumsum(examples.column("length").to_numpy())])
    size, types = int(starts[-1]), folder / TYPES
    return Encoded(
        tokens=mapped(folder / TOKENS, dtype, size),
        types=mapped(types, np.dtype(np.int8), size) if types.exists() else None,
        starts=starts,
        labels=examples.column("label").to_numpy().copy(),
        names=examples.column("id"),
        padding=int(padding),
    )


def training_batches(lengths: Indices, batch_size: int, seed: int, epoch: int) -> list[Indices]:
    """One epoch: shuffle the examples, sort within large windows of about one size, cut into batches, shuffle the batches."""
    generator = np.random.default_rng([seed, epoch])
    order = generator.permutation(len(lengths))
    batches: list[Indices] = []
    count = -(-len(order) // batch_size)
    for numbers in np.array_split(np.arange(count), max(1, count // WINDOW)):  # a small rest of its own would pad a lot
        window = order[numbers[0] * batch_size : (numbers[-1] + 1) * batch_size]
        window = window[np.argsort(lengths[window], kind="stable")]
        batches.extend(window[i : i + batch_size] for i in range(0, len(window), batch_size))
    widths = np.array([lengths[batch].max() for batch in batches])
    shuffled = generator.permutation(len(batches))
    for _ in range(REDRAWS):  # a short epoch can by chance come out half sorted
        if _neighbours(widths[shuffled]) <= MOST_CORRELATION:
            break
        shuffled = generator.permutation(len(batches))
    return [batches[i] for i in shuffled]


def _neighbours(widths: npt.NDArray[np.int64]) -> float:
    """Correlation of each batch's length with the next one's; 0 where lengths do not vary."""
    if len(widths) < 3 or np.ptp(widths[:-1]) == 0 or np.ptp(widths[1:]) == 0:
        return 0.0
    return float(np.corrcoef(widths[:-1], widths[1:])[0, 1])


def evaluation_batches(lengths: Indices, tokens: int) -> list[Indices]:
    """Every example once, longest first, at most so many padded tokens in a batch."""
    order = np.argsort(-lengths, kind="stable")
    widths = np.maximum(1, lengths[order])
    sizes = np.minimum(np.maximum(1, tokens // widths), len(order) - np.arange(len(order)))
    if len(order) <= FEW:
        sizes = _cheapest_sizes(widths, sizes, tokens * BATCH_COST)
    batches, start = [], 0
    while start < len(order):
        batches.append(order[start : start + sizes[start]])
        start += int(sizes[start])
    return batches


def _cheapest_sizes(widths: Indices, largest: Indices, cost: float) -> Indices:
    """The size of the batch that begins at each example, such that padding and batches together cost least.

    Args:
        widths: of the examples, longest first.
        largest: the size that a batch which begins there may have.
        cost: of a batch, besides that of its tokens, in tokens.
    """
    sizes, least = np.empty_like(largest), np.zeros(len(widths) + 1)
    counts = np.arange(1, int(largest.max(initial=0)) + 1)
    for start in range(len(widths) - 1, -1, -1):  # `least` is the cost of all examples from one on
        most = largest[start]
        found = counts[:most] * widths[start] + least[start + 1 : start + 1 + most]
        best = int(found.argmin())
        sizes[start], least[start] = best + 1, found[best] + cost
    return sizes


def collate(data: Encoded, rows: Indices) -> Arrays:
    """The rows as arrays, padded to the longest of them."""
    starts, lengths = data.starts[rows], data.lengths[rows]
    width = int(lengths.max())
    places = np.arange(width)
    real = places < lengths[:, None]
    flat = (starts[:, None] + places)[real]
    ids = np.full(real.shape, data.padding, dtype=np.int64)
    ids[real] = data.tokens[flat]
    arrays = {"input_ids": ids, "attention_mask": real.astype(np.int64), "labels": data.labels[rows]}
    if data.types is not None:
        types = np.zeros(real.shape, dtype=np.int64)
        types[real] = data.types[flat]
        arrays["token_type_ids"] = types
    return arrays
