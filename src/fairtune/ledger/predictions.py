"""Predictions on disk: what every figure is recomputed from.

A classifier leaves id, label and scores of every example; a language model leaves sums over each document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute, parquet

from fairtune.core.errors import LedgerError
from fairtune.core.files import write_atomically
from fairtune.settings.metrics import predicted_classes

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Predictions:
    """Scores (logits) of one split.

    Args:
        line: at which two classes are told apart, where the analysis has moved it; what is stored has none.
    """

    ids: tuple[str, ...]
    labels: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]
    line: float = 0.0

    @cached_property
    def predicted(self) -> npt.NDArray[np.int64]:
        """The class that is said of each example."""
        return predicted_classes(self.scores, self.line)


@dataclass(frozen=True)
class TextScores:
    """How well a language model predicted the documents of one split.

    Args:
        nll: losses in nats, summed over the tokens of the document's text.
        tokens, bytes, words: of the text alone, without EOS and BOS.
        correct: tokens that were the most likely one.
    """

    ids: tuple[str, ...]
    nll: npt.NDArray[np.float64]
    tokens: Counts
    bytes: Counts
    words: Counts
    correct: Counts


COUNTS = ("tokens", "bytes", "words", "correct")
SUMS = ("nll", *COUNTS)


def write_predictions(path: Path, splits: Mapping[str, Predictions | TextScores]) -> None:
    """Write what the splits of one run scored, all of one type."""
    texts = [part for part in splits.values() if isinstance(part, TextScores)]
    classified = [part for part in splits.values() if isinstance(part, Predictions)]
    columns: dict[str, Any] = {
        "split": pa.array([name for name, part in splits.items() for _ in part.ids], pa.string()),
        "id": pa.array([i for part in splits.values() for i in part.ids], pa.string()),
    }
    for name in SUMS if texts else ():
        dtype = pa.int64() if name in COUNTS else pa.float64()
        columns[name] = pa.array(np.concatenate([getattr(part, name) for part in texts]), dtype)
    if not texts:
        columns["label"] = pa.array(np.concatenate([part.labels for part in classified]), pa.int64())
        columns["scores"] = pa.array([row for part in classified for row in part.scores], pa.list_(pa.float32()))
    content = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), content)
    write_atomically(path, content.getvalue().to_pybytes())


def read_predictions(path: Path, split: str) -> Predictions | TextScores:
    """What a run scored on a split; its columns say by which kind of model. A split that is not there has no rows."""
    try:
        # A filter while reading goes through threads that damaged files were seen to hang.
        table = parquet.ParquetFile(pa.BufferReader(path.read_bytes())).read(use_threads=False)
        table = table.filter(compute.equal(table["split"], split))
        if "nll" in table.column_names:
            counts = {name: table[name].to_numpy().astype(np.int64) for name in COUNTS}
            return TextScores(_ids(table), table["nll"].to_numpy().astype(np.float64), **counts)
        return Predictions(_ids(table), table["label"].to_numpy().astype(np.int64), _rows(table["scores"]))
    except (OSError, pa.ArrowException, ValueError, TypeError, KeyError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise LedgerError(f"{path}: these predictions cannot be read ({reason}); move the run's folder away.") from None


def _rows(column: Any) -> npt.NDArray[np.float32]:
    """Lists of one length as rows."""
    if not len(column):
        return np.zeros((0, 0), dtype=np.float32)
    values = column.combine_chunks().flatten().to_numpy()
    return np.asarray(values, dtype=np.float32).reshape(len(column), -1)


_known_ids: dict[bytes, tuple[str, ...]] = {}
"""The newest tuple: runs of a study scored the same examples, whose names are made and held once."""


def _ids(table: Any) -> tuple[str, ...]:
    """The names of examples."""
    column = table["id"].combine_chunks()
    key = hashlib.sha256(b"".join(memoryview(part) for part in column.buffers() if part is not None)).digest()
    if key not in _known_ids:
        _known_ids.clear()
        _known_ids[key] = tuple(column.to_pylist())
    return _known_ids[key]
