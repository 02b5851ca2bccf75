"""Files are read by columns: the same rows, numbers and messages as row by row, and the same hashes as text by text."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtune.core.errors import DataError
from fairtune.tasks.reading import blocks, reader
from fairtune.tasks.reading.blocks import ColumnBlocks
from fairtune.tasks.reading.reader import RowReader
from fairtune.tasks.text_hashes import PAIR_SEPARATOR, exact_and_normal, normal_form, unit_hashes

CELLS = (
    "plain",
    "a, b",
    'say "x"',
    "",
    "über 😀",
    "two\nlines",
    "two\r\nlines",
    " spaces ",
    "null",
    "2020-01-01",
    "tab\t.",
)
DAMAGE = b'"\n\r,\t{}[]:\\ \0\xff\xc3a1'


class NoBlocks(ColumnBlocks):
    """Nothing is plain, so that all is read row by row."""

    def __iter__(self) -> Iterator[Any]:
        return iter(())


def made_file(draw: random.Random, kind: str) -> bytes:
    rows = [{"text": draw.choice(CELLS), "label": draw.choice("ab")} for _ in range(draw.randrange(1, 12))]
    if kind == "jsonl":
        for row in rows:
            row |= {} if draw.random() < 0.9 else {"label": draw.choice([1, True, None, 1.5, "\ud83d", [1], 2**70])}
        lines = [json.dumps(row, ensure_ascii=draw.random() < 0.9) for row in rows]
    else:
        quoted = [['"' + cell.replace('"', '""') + '"' for cell in row.values()] for row in rows]
        lines = [("," if kind == "csv" else "\t").join(cells) for cells in [["text", "label"], *quoted]]
    lines += [""] * (draw.random() < 0.1)
    content = bytearray(draw.choice(["\n", "\r\n"]).join(lines).encode("utf-8", "replace"))
    for _ in range(draw.choice([0, 0, 1, 3])):
        content.insert(draw.randrange(len(content)), draw.choice(DAMAGE))
    return bytes(content)


def outcome(file: Path) -> Any:
    found = []
    try:
        for batch in RowReader(str(file), columns=["label", "text"]):
            columns = [[(type(value), value) for value in batch.values(name)] for name in ("label", "text")]
            found += list(zip(batch.numbers, *columns, strict=True))
    except DataError as error:
        return str(error)
    return found


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_sound_and_damaged_files_give_the_same_by_columns_as_row_by_row(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, file, by_columns = random.Random(kind), tmp_path / f"d.{kind}", 0
    for _ in range(150):
        file.write_bytes(made_file(draw, kind))
        monkeypatch.setattr(reader, "ColumnBlocks", NoBlocks)
        wanted = outcome(file)
        monkeypatch.setattr(reader, "ColumnBlocks", ColumnBlocks)
        for size in (1 << 21, 80):
            monkeypatch.setattr(blocks, "BLOCK", size)
            if size > 80 or "not UTF-8" not in str(wanted):  # which is told first depends on how much is looked at
                assert outcome(file) == wanted, file.read_bytes()
        with file.open("rb") as handle:
            read = ColumnBlocks(handle, kind, ["text"])
            by_columns += sum(len(numbers) for numbers, _ in read)
    assert by_columns > 150, "most rows are plain"


def test_a_row_that_is_wrong_is_told_by_its_number_after_many_that_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 100)
    table, lines = tmp_path / "d.csv", tmp_path / "d.jsonl"
    table.write_text("text,label\n" + '"two\nlines",a\n\n' * 50 + "one,two,three\n")
    assert "row 101 (line 152) has 3 fields, the header has 2" in outcome(table)
    lines.write_text('{"text": "t", "label": 1}\n' * 50 + '{"text": "t"}\n')
    assert "line 51: no column 'label'" in outcome(lines)
    lines.write_text('{"text": "t", "label": 1}\n' * 50 + '{"text": "t"\n')
    assert "line 51 is not JSON" in outcome(lines)


def test_hashes_of_many_texts_are_those_of_each() -> None:
    draw = random.Random(0)
    pools = (" ab1 2,.Z_'\t\n\x1c\0", "äß ÉΣςσ1٣٤ ½²１２-\u2028\u00a0İﬁ字。😀\ud83d", "0123456789 .,-:", "!? .")
    texts = ["".join(draw.choices(draw.choice(pools), k=draw.randrange(20))) for _ in range(3000)]
    texts += ["9 9 " * 20_000, "é " + "9 9 " * 20_000]
    pairs = list(zip(texts, reversed(texts), strict=True))
    for examples in ([(text,) for text in texts], pairs):
        exact, normal = exact_and_normal(examples)
        for found, form in ((exact, str), (normal, normal_form)):
            joined = [PAIR_SEPARATOR.join(map(form, example)).encode("utf-8", "surrogatepass") for example in examples]
            wanted = b"".join(hashlib.blake2b(one, digest_size=8).digest() for one in joined)
            assert found.tobytes() == wanted
    digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
    assert unit_hashes(texts).tolist() == [int.from_bytes(digest[:8], "big") / 2**64 for digest in digests]
    assert len(exact_and_normal([])[0]) == 0
    assert np.all(unit_hashes(texts) < 1)
