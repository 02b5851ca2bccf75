"""Files that are made to do harm: they are refused, or read a piece at a time; nothing hangs, fills the memory or crashes."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.tasks.test_task_files import load

from fairtune.classifier.labelled import read_labelled
from fairtune.core.errors import DataError
from fairtune.tasks.corpora import load_corpus
from fairtune.tasks.reading import tables
from fairtune.tasks.reading.reader import RowReader
from fairtune.tasks.titles.files import read_titles


def as_task(file: Path) -> Any:
    return load(file, validation=str(file), test=str(file))


def as_documents(file: Path) -> Any:
    return list(load_corpus({"kind": "language_model", "train": str(file), "text": "text"}).documents("train"))


def as_training(file: Path) -> Any:
    return read_labelled(file, ["text"], "label")


def as_questions(file: Path) -> Any:
    return [records.texts(["text"]) for records in RowReader(str(file))]


def as_titles(file: Path) -> Any:
    return read_titles([file], "text")


EVERYBODY = [as_task, as_documents, as_training, as_questions, as_titles]
Read = Callable[[Path], Any]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("read", EVERYBODY)
@pytest.mark.parametrize("name", ["d.csv", "d.jsonl.gz", "d.parquet"])
def test_a_pipe_is_refused_and_not_waited_for(read: Read, name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=rf"{name}: that is a pipe or a device, not a file; save what it gives"):
        read(tmp_path / name)


def test_what_a_shell_gives_for_the_output_of_a_command_can_be_asked(tmp_path: Path) -> None:
    """`fairtune predict MODEL <(command) --format jsonl`"""
    code = (
        "import sys; from fairtune.tasks.reading.reader import RowReader; "
        "print([r.rows for r in RowReader(sys.argv[1], 'jsonl')])"
    )
    script = f'{sys.executable} -c "{code}" <(echo \'{{"text": "from a pipe"}}\')'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)
    assert done.stdout == "[[{'text': 'from a pipe'}]]\n"


def test_parquet_from_a_pipe_is_refused() -> None:
    reader, writer = os.pipe()
    with pytest.raises(DataError, match="Parquet cannot be read from a pipe"):
        RowReader(f"/dev/fd/{reader}", "parquet")
    os.close(reader)
    os.close(writer)


def peak_of(read: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(DataError):
            read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("content", [b"\xff", b"\0", b"x"])
@pytest.mark.parametrize("name", ["d.csv.gz", "d.jsonl.gz", "d.txt.gz"])
def test_a_line_of_forty_megabytes_in_a_small_packed_file_is_not_held(
    name: str, content: bytes, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(gzip.compress(content * 40_000_000, 1))
    assert peak_of(lambda: list(RowReader(str(file), columns=["text"]))) < 30_000_000


@pytest.mark.parametrize("read", EVERYBODY)
def test_a_row_that_goes_on_over_all_lines_is_not_held(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "LONGEST_ROW", 10_000)
    file = tmp_path / "d.csv"
    file.write_bytes(b'text,label\nfine,a\n"' + b'\n","' * 100_000)
    with pytest.raises(DataError, match="opened in the row of line 3 is not closed"):
        read(file)
    file.write_bytes(b"text,label\n" + b'"fine\n",a\n"good",b\n' * 10_000)
    assert read(file), "a file of many rows is no long row"


@pytest.mark.parametrize("read", [as_task, as_training])
@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("cut \ud83d", "row 2: column 'label' holds half a character"),
        ("x" * 5000, "row 2: .* label of 5,000 characters"),
    ],
)
def test_labels_that_no_class_is_called_are_refused(read: Read, label: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text(lines({"text": "a", "label": "fine"}, {"text": "b", "label": label}))
    with pytest.raises(DataError, match=expected) as caught:
        read(file)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("read", EVERYBODY)
def test_a_hundred_thousand_columns_are_reported_in_a_sentence(read: Read, tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text(",".join(f"c{i}" for i in range(100_000)) + "\n")
    with pytest.raises(DataError) as caught:
        read(file)
    assert len(str(caught.value)) < 1000


def test_a_long_text_that_stands_in_many_rows_of_parquet_is_not_held_as_often(tmp_path: Path) -> None:
    """A file of a few kilobytes, of which the rows are half a gigabyte."""
    file = tmp_path / "d.parquet"
    rows = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), ["x" * 100_000])
    pa.parquet.write_table(pa.table({"text": rows, "label": ["a"] * 5000}), file, store_schema=False)
    assert file.stat().st_size < 1_000_000
    before = pa.total_allocated_bytes()
    first = next(iter(RowReader(str(file), columns=["text"])))
    assert len(first.numbers) < 500
    assert pa.total_allocated_bytes() - before < 60_000_000
