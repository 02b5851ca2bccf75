"""Sums by document on disk: they come back bit for bit, beside predictions of classifiers that stay readable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from fairtune.core.errors import LedgerError
from fairtune.ledger.predictions import SUMS, TextScores, read_predictions, write_predictions


def made(n: int, seed: int = 0) -> TextScores:
    generator = np.random.default_rng(seed)
    tokens, size, words, correct = (generator.integers(1, 2**40, n) for _ in range(4))
    ids = tuple(f"é-{i}" for i in range(n))
    return TextScores(ids, generator.lognormal(5, 2, n), tokens, size, words, correct)


def test_sums_come_back_bit_for_bit(tmp_path: Path) -> None:
    parts = {"validation": made(3, 1), "test": made(40, 2), "final": made(40, 3)}
    write_predictions(tmp_path / "p.parquet", parts)
    for split, part in parts.items():
        found = read_predictions(tmp_path / "p.parquet", split)
        assert isinstance(found, TextScores)
        assert found.ids == part.ids
        for name in SUMS:
            assert getattr(found, name).dtype == getattr(part, name).dtype
            assert getattr(found, name).tobytes() == getattr(part, name).tobytes()


@pytest.mark.parametrize(
    "columns", [{"x": [1]}, {"split": ["test"], "id": ["a"]}, {"split": ["test"], "id": ["a"], "nll": [1.0]}]
)
def test_a_foreign_file_is_reported(tmp_path: Path, columns: dict[str, list[object]]) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "p.parquet")
    with pytest.raises(LedgerError, match=r"p\.parquet: these predictions cannot be read .*move the run's folder away"):
        read_predictions(tmp_path / "p.parquet", "test")


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    write_predictions(tmp_path / "p.parquet", {"test": made(500)})
    content = (tmp_path / "p.parquet").read_bytes()
    (tmp_path / "p.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(LedgerError, match="cannot be read"):
        read_predictions(tmp_path / "p.parquet", "test")
