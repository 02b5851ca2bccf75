"""Batches of similar length: little padding, an order that a seed decides, the same for every arm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fairtune.tasks.tokens.encoded_splits import Encoded

Indices = npt.NDArray[np.int64]
Arrays = dict[str, npt.NDArray[np.int64]]
WINDOW = 200
"""Batches in a window that is sorted by length. Larger pads less; smaller mixes better."""
MOST_CORRELATION, REDRAWS = 0.2, 20
"""Adjacent batches may correlate in length by this much; an order that exceeds it is drawn again."""


def training_batches(lengths: Indices, batch_size: int, seed: int, epoch: int) -> list[Indices]:
    """One epoch: shuffle the examples, sort within large windows, cut into batches, shuffle the batches."""
    generator = np.random.default_rng([seed, epoch])
    order = generator.permutation(len(lengths))
    batches: list[Indices] = []
    span = WINDOW * batch_size
    for start in range(0, len(order), span):
        window = order[start : start + span]
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
    batches, start = [], 0
    while start < len(order):
        size = max(1, tokens // int(lengths[order[start]]))
        batches.append(order[start : start + size])
        start += size
    return batches


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
