"""Scores and scored texts on disk: they come back bit for bit, and damage is reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairtune.core.errors import LedgerError
from fairtune.ledger.predictions import (
    AboutExamples,
    Examples,
    Predictions,
    TextScores,
    about_examples,
    read_examples,
    read_predictions,
    write_examples,
    write_predictions,
)

ONE = Examples(("t-1", "t-2"), (("a <b>",), ("c",)), np.array([0, 1]), ("long", None), np.array([4, 3], dtype=np.int32))
PAIRS = Examples(("v-1",), (("p", ""),), np.array([1]), (None,), np.array([9], dtype=np.int32))


def texts(n: int) -> TextScores:
    generator = np.random.default_rng(n)
    tokens, size, words, correct = (generator.integers(1, 2**40, n) for _ in range(4))
    return TextScores(tuple(f"é-{i}" for i in range(n)), generator.lognormal(5, 2, n), tokens, size, words, correct)


def classified(n: int) -> Predictions:
    generator = np.random.default_rng(n)
    scores = generator.normal(size=(n, 3)).astype(np.float32) * np.float32(1e-3)
    return Predictions(tuple(f"é-{i}" for i in range(n)), generator.integers(0, 3, n), scores)


@pytest.mark.parametrize("made", [texts, classified])
def test_scores_come_back_bit_for_bit(tmp_path: Path, made: type[TextScores]) -> None:
    parts = {"validation": made(3), "test": made(40), "final": made(41)}  # type: ignore[call-arg, arg-type]
    write_predictions(tmp_path / "p.parquet", parts)
    for split, part in parts.items():
        found = vars(read_predictions(tmp_path / "p.parquet", split))
        assert found.pop("ids") == part.ids
        for name, values in found.items():
            kept = np.asarray(getattr(part, name))
            assert (np.asarray(values).dtype, np.asarray(values).tobytes()) == (kept.dtype, kept.tobytes())
    assert read_predictions(tmp_path / "p.parquet", "train").ids == ()


def test_texts_come_back(tmp_path: Path) -> None:
    file, about = tmp_path / "examples.parquet", AboutExamples("k", {"test": 5, "validation": 1}, "minilm")
    write_examples(file, about, {"test": ONE, "validation": PAIRS})
    assert about_examples(file) == about
    for split, kept in (("test", ONE), ("validation", PAIRS)):
        found = read_examples(file, split)
        assert (found.ids, found.texts, found.kinds) == (kept.ids, kept.texts, kept.kinds)
        assert (found.labels.tolist(), found.tokens.tolist()) == (kept.labels.tolist(), kept.tokens.tolist())


@pytest.mark.parametrize("damage", ["missing", "cut", "foreign"])
def test_missing_and_damaged_files(tmp_path: Path, damage: str) -> None:
    scores, kept = tmp_path / "p.parquet", tmp_path / "e.parquet"
    write_predictions(scores, {"test": texts(500)})
    write_examples(kept, AboutExamples("k", {}), {"test": ONE})
    for file in (scores, kept):
        content = file.read_bytes()
        file.write_bytes(b"no parquet" if damage == "foreign" else content[: len(content) // 2])
        if damage == "missing":
            file.unlink()
    with pytest.raises(LedgerError, match=r"p\.parquet: these predictions cannot be read .*move the run's folder away"):
        read_predictions(scores, "test")
    with pytest.raises(LedgerError, match=r"e\.parquet: the examples cannot be read .*; run the study again"):
        read_examples(kept, "test")
    assert about_examples(kept) is None


def test_damage_to_the_name_of_a_column_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "e.parquet"
    write_examples(file, AboutExamples("k", {}), {"test": ONE})
    file.write_bytes(file.read_bytes().replace(b"\x04pair", b"\x04pajr"))
    with pytest.raises(LedgerError, match=r"e\.parquet: the examples cannot be read"):
        read_examples(file, "test")
    assert about_examples(file) is None
