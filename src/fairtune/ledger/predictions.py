"""Predictions on disk: example id, label and scores of every example that was scored, from which every figure is recomputed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from fairtune.errors import LedgerError
from fairtune.files import write_atomically


@dataclass(frozen=True)
class Predictions:
    """Scores (logits) of one split."""

    ids: tuple[str, ...]
    labels: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]


def write_predictions(path: Path, splits: Mapping[str, Predictions]) -> None:
    table = pa.table(
        {
            "split": pa.array([name for name, part in splits.items() for _ in part.ids], pa.string()),
            "id": pa.array([i for part in splits.values() for i in part.ids], pa.string()),
            "label": pa.array(np.concatenate([part.labels for part in splits.values()]), pa.int64()),
            "scores": pa.array([row for part in splits.values() for row in part.scores], pa.list_(pa.float32())),
        }
    )
    content = pa.BufferOutputStream()
    parquet.write_table(table, content)
    write_atomically(path, content.getvalue().to_pybytes())


def read_predictions(path: Path, split: str) -> Predictions:
    try:
        table = parquet.read_table(path, filters=[("split", "=", split)])
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise LedgerError(f"{path}: these predictions cannot be read ({reason}); move the run's folder away.") from None
    scores = np.stack(table["scores"].to_numpy(zero_copy_only=False)) if len(table) else np.zeros((0, 0))
    return Predictions(
        tuple(table["id"].to_pylist()), table["label"].to_numpy().astype(np.int64), scores.astype(np.float32)
    )
