"""A task's splits as token ids, and batches of them.

Ids are made once, kept in the cache as Arrow, and mapped into memory by every run that trains on them. Batches are of similar
length, so that there is little padding; a seed decides their order, the same for every arm.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.cache import cached, key_of
from fairtune.core.stages import stage
from fairtune.settings.few_labels import Examples, FewLabels, is_resampled
from fairtune.tasks.reading.rows import open_table
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.task import SPLITS, Labels, Split, Task, Texts
from fairtune.tasks.tokens.tokenization import BATCH, tokenize, tokenizer_identity

VERSION = 1
"""Raised whenever the same texts would give other tokens, or another file."""
FILE = "tokens.arrow"
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


def encode(split: Split, tokenizer: Any, max_length: int, check_stop: Callable[[], None] = lambda: None) -> Encoded:
    """A split as tokens, without the cache."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), split, tokenizer, max_length, check_stop)
        return _open(Path(folder), tokenizer)  # stays mapped when the file's name is gone


_opened: dict[str, Encoded] = {}


def encode_task(
    task: Task,
    tokenizer: Any,
    max_length: int,
    sizes: Mapping[str, Examples | None] | None = None,
    check_stop: Callable[[], None] = lambda: None,
    seed: int | None = None,
) -> dict[str, Encoded]:
    """All splits as tokens, from the cache where they are in it.

    A sample of few labels that a seed drew is tokenised where it is needed: that takes less time than to look for it, and the
    cache would fill with samples.

    Args:
        sizes: how many examples of a split, where not all: its fixed sample.
        check_stop: called again and again, so that a long job can be stopped.
        seed: that draws the samples which are drawn anew for each seed.
    """
    identity, found = [tokenizer_identity(tokenizer), tokenizer.pad_token_id], {}
    for name in SPLITS:
        split, size = task.splits[name], (sizes or {}).get(name)
        if is_resampled(size):
            assert seed is not None, "each seed has its own sample"
            found[name] = encode(fixed_sample(split, size, seed), tokenizer, max_length, check_stop)
            continue
        sampled = _cut(size, len(split))
        key = key_of([VERSION, split.identity, sampled, identity, max_length])
        if key not in _opened:
            build = _builder(split, size, tokenizer, max_length, check_stop)
            _opened[key] = cached("tokens", key, build, lambda folder: _open(folder, tokenizer), check_stop)
        found[name] = _opened[key]
    return found


def _cut(size: Examples | None, rows: int) -> int | dict[str, int] | None:
    """The size of a sample as part of a key; None where it is the whole split."""
    if isinstance(size, FewLabels):
        return {"per_class": size.per_class}
    return size if size is not None and size < rows else None


def _builder(
    split: Split, size: Examples | None, tokenizer: Any, max_length: int, check_stop: Callable[[], None]
) -> Callable[[Path], None]:
    return lambda folder: _write(folder, fixed_sample(split, size), tokenizer, max_length, check_stop)


def _write(folder: Path, split: Split, tokenizer: Any, max_length: int, check_stop: Callable[[], None]) -> None:
    """Tokenise into flat files as the tokens come; then make one Arrow batch of them, which needs no memory either."""
    dtype = np.dtype(np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32)
    flat, flat_types = folder / "tokens.flat", folder / "types.flat"
    lengths = [np.zeros(1, dtype=np.int64)]
    with flat.open("wb") as tokens, flat_types.open("wb") as types, stage("tokenising texts", len(split)) as advance:
        for piece in tokenize(_batches(split), tokenizer, max_length, check_stop=check_stop):
            tokens.write(piece.tokens.astype(dtype, copy=False).data)
            if piece.types is not None:
                types.write(piece.types.data)
            lengths.append(piece.lengths)
            advance(len(piece.lengths))
    _join(folder / FILE, split, flat, flat_types, dtype, lengths)
    flat.unlink()
    flat_types.unlink()


def _join(
    file: Path, split: Split, flat: Path, flat_types: Path, dtype: np.dtype[Any], lengths: list[npt.NDArray[np.int64]]
) -> None:
    """Make one batch of flat files."""
    import pyarrow as pa

    offsets = pa.array(np.cumsum(np.concatenate(lengths)), pa.int64())
    columns = {"id": split.table.column("id").combine_chunks(), "label": pa.array(split.labels, pa.int64())}
    columns["tokens"] = pa.LargeListArray.from_arrays(offsets, _mapped(flat, dtype))
    if flat_types.stat().st_size:
        columns["types"] = pa.LargeListArray.from_arrays(offsets, _mapped(flat_types, np.dtype(np.int8)))
    batch = pa.record_batch(columns)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _batches(split: Split) -> Iterator[list[Texts]]:
    for start in range(0, len(split), BATCH):
        yield split.texts[start : start + BATCH]


def _mapped(file: Path, dtype: np.dtype[Any]) -> Any:
    import pyarrow as pa

    size = file.stat().st_size // dtype.itemsize
    buffer = pa.memory_map(str(file)).read_buffer() if size else pa.py_buffer(b"")
    return pa.Array.from_buffers(pa.from_numpy_dtype(dtype), size, [None, buffer])


def _open(folder: Path, tokenizer: Any) -> Encoded:
    table = open_table(folder / FILE)
    tokens = table.column("tokens").chunk(0)
    return Encoded(
        tokens=tokens.values.to_numpy(),
        types=table.column("types").chunk(0).values.to_numpy() if "types" in table.column_names else None,
        starts=tokens.offsets.to_numpy(),
        labels=table.column("label").to_numpy().copy(),
        names=table.column("id"),
        padding=int(tokenizer.pad_token_id),
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


def fixed_order(count: int, batch_size: int) -> Iterator[Indices]:
    """All rows in the order of the data, for passes that must not depend on a seed."""
    for start in range(0, count, batch_size):
        yield np.arange(start, min(start + batch_size, count))
