"""The scored texts of a study, written once and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairtune.core.errors import LedgerError
from fairtune.ledger.examples import AboutExamples, Examples, about_examples, read_examples, write_examples

ONE = Examples(("t-1", "t-2"), (("a <b>",), ("c",)), np.array([0, 1]), ("long", None), np.array([4, 3], dtype=np.int32))
PAIRS = Examples(("v-1",), (("p", ""),), np.array([1]), (None,), np.array([9], dtype=np.int32))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    file, about = tmp_path / "examples.parquet", AboutExamples("k", {"test": 5, "validation": 1}, "minilm")
    write_examples(file, about, {"test": ONE, "validation": PAIRS})
    assert about_examples(file) == about
    for split, kept in (("test", ONE), ("validation", PAIRS)):
        found = read_examples(file, split)
        assert (found.ids, found.texts, found.kinds) == (kept.ids, kept.texts, kept.kinds)
        assert found.labels.tolist() == kept.labels.tolist()
        assert found.tokens.tolist() == kept.tokens.tolist()


@pytest.mark.parametrize("content", [None, b"", b"no parquet"])
def test_missing_and_damaged_files(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "e").write_bytes(content)
    assert about_examples(tmp_path / "e") is None
    with pytest.raises(LedgerError, match=r"the examples cannot be read .*; run the study again"):
        read_examples(tmp_path / "e", "test")
