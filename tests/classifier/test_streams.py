"""Rows in and out: every format with all its columns, no further ahead than needed, and never half a file."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fairtune.classifier.prediction import PredictionRequest, predict_rows
from fairtune.classifier.row_output import RowOutput, partial_name
from fairtune.core.errors import DataError
from fairtune.tasks.reading.reader import FIRST_ROWS, RowBatch, RowReader

ROWS = [
    {"id": "7", "text": 'a "good" film, with\nplot', "label": "pos"},
    {"id": "8", "text": "", "label": "neg"},
    {"id": "9", "text": "größer 😀", "label": "neg"},
]
ADDED: dict[str, list[Any]] = {"predicted": ["pos", "neg", "neg"], "confidence": [0.75, 0.5, 1.0]}
KINDS = ["csv", "tsv", "jsonl", "parquet"]


class Lengths:
    """Scores a text by its length."""

    def logits(self, texts: Any, progress: Any = None) -> Any:
        if progress is not None:
            progress(len(texts))
        return np.array([[0.0, len(text[0]) - 4.0] for text in texts], dtype=np.float32)


def read(file: Path | str, given: str | None = None) -> list[dict[str, Any]]:
    return [row for records in RowReader(str(file), given) for row in records.rows]


def records(rows: list[dict[str, Any]] = ROWS) -> RowBatch:
    return RowBatch("here", list(range(1, 1 + len(rows))), rows)


def write(file: Path, like: str = "jsonl") -> Path:
    with RowOutput(str(file), like) as sink:
        sink.write(records(), ADDED)
    return file


def write_all(file: Path, several: list[RowBatch]) -> None:
    with RowOutput(str(file), "jsonl") as sink:
        for some in several:
            sink.write(some, {"predicted": [1] * len(some)})


def interrupted_after_rows(sink: RowOutput) -> None:
    with sink:
        sink.write(records(), ADDED)
        raise KeyboardInterrupt


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_back_what_was_written(kind: str, packed: str, tmp_path: Path) -> None:
    file = write(tmp_path / f"rows.{kind}{packed}")
    expected = [
        {**row, "predicted": p, "confidence": c}
        for row, p, c in zip(ROWS, ADDED["predicted"], ADDED["confidence"], strict=True)
    ]
    if kind in ("csv", "tsv"):
        expected = [{name: str(value) for name, value in row.items()} for row in expected]
    assert read(file) == expected
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    if packed:
        assert file.read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_any_format_can_become_any_other(source: str, target: str, tmp_path: Path) -> None:
    given = write(tmp_path / f"given.{source}")
    asked = PredictionRequest(["neg", "pos"], ["text"], prefix="new_")
    with RowOutput(str(tmp_path / f"out.{target}"), source) as sink:
        outcome = predict_rows(asked, Lengths(), RowReader(str(given)), sink)
    found = read(tmp_path / f"out.{target}")
    assert outcome.rows == 3
    assert [row["text"] for row in found] == [row["text"] for row in ROWS]
    assert [row["new_predicted"] for row in found] == ["pos", "neg", "pos"]
    assert list(found[0]) == ["id", "text", "label", "predicted", "confidence", "new_predicted", "new_confidence"]


def test_plain_text_is_a_text_a_line_and_a_blank_line_is_an_empty_text(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_bytes(b"one\r\n\nthree")
    assert read(tmp_path / "lines.txt") == [{"text": "one"}, {"text": ""}, {"text": "three"}]


@pytest.mark.parametrize(
    ("content", "given", "kind", "rows"),
    [
        (b'{"text": "a", "n": 1}\n{"text": "b"}\n', None, "jsonl", [{"text": "a", "n": 1}, {"text": "b"}]),
        (b"\xef\xbb\xbfa\nb\n", None, "txt", [{"text": "a"}, {"text": "b"}]),
        (b"[1]\n", None, "txt", [{"text": "[1]"}]),
        (b"text,n\na,1\n", "csv", "csv", [{"text": "a", "n": "1"}]),
    ],
)
def test_standard_input_is_read_by_its_first_line_or_as_told(
    content: bytes, given: str | None, kind: str, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    source = RowReader("-", given)
    assert source.format == kind
    assert [row for found in source for row in found.rows] == rows


def test_rows_are_answered_before_more_than_the_next_ones_are_read(tmp_path: Path) -> None:
    """A generator that fails if it is asked for rows while the ones before are not written yet."""
    file = tmp_path / "out.jsonl"
    with RowOutput(str(file), "jsonl") as sink:

        def rows() -> Iterator[RowBatch]:
            for number in range(5):
                assert sink.rows == 3 * number
                yield records()

        predict_rows(PredictionRequest(["a", "b"], ["text"]), Lengths(), rows(), sink)
    assert len(read(file)) == 15


def test_the_first_rows_come_before_a_later_one_is_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "a"}\n' * FIRST_ROWS + "broken\n", encoding="utf-8")
    source = iter(RowReader(str(file)))
    assert len(next(source)) == FIRST_ROWS
    with pytest.raises(DataError, match=f"line {FIRST_ROWS + 1} is not JSON"):
        next(source)


def test_parquet_keeps_the_types_of_its_columns(tmp_path: Path) -> None:
    when = datetime.datetime(2026, 1, 2, 3, 4, 5)
    table = pa.table({"text": ["a"], "when": pa.array([when], pa.timestamp("ms")), "small": pa.array([3], pa.int8())})
    pa.parquet.write_table(table, tmp_path / "in.parquet")
    for out in ("out.parquet", "out.jsonl", "out.csv"):
        with RowOutput(str(tmp_path / out), "parquet") as sink:
            predict_rows(PredictionRequest([0, 1], ["text"]), Lengths(), RowReader(str(tmp_path / "in.parquet")), sink)
    found = pa.parquet.read_table(tmp_path / "out.parquet")
    assert found.schema.field("when").type == pa.timestamp("ms")
    assert found.schema.field("small").type == pa.int8()
    assert found.schema.field("predicted").type == pa.int64()
    assert read(tmp_path / "out.jsonl")[0]["when"] == read(tmp_path / "out.csv")[0]["when"] == when.isoformat()


def test_values_that_a_table_has_no_form_for_are_json_in_it(tmp_path: Path) -> None:
    with RowOutput(str(tmp_path / "out.csv"), "jsonl") as sink:
        sink.write(records([{"text": "a", "tags": ["x", 1], "none": None}]), {"predicted": [1]})
    assert read(tmp_path / "out.csv") == [{"text": "a", "tags": '["x", 1]', "none": "", "predicted": "1"}]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_that_comes_late_has_no_place_in_a_table(kind: str, tmp_path: Path) -> None:
    rows = [records([{"text": "a"}]), records([{"text": "b", "new": 2}])]
    with pytest.raises(DataError, match=r"'new'.*write JSONL"):
        write_all(tmp_path / f"out.{kind}", rows)
    assert read(tmp_path / f"out.partial.{kind}")[0]["text"] == "a"


@pytest.mark.parametrize("kind", [*KINDS, "csv.gz"])
def test_what_was_done_before_an_interruption_is_a_readable_file_of_another_name(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"out.{kind}"
    file.write_text("what was there before", encoding="utf-8")
    sink = RowOutput(str(file), "jsonl")
    with pytest.raises(KeyboardInterrupt):
        interrupted_after_rows(sink)
    assert file.read_text(encoding="utf-8") == "what was there before"
    assert sink.kept == partial_name(file) == tmp_path / f"out.partial.{kind}"
    assert [row["text"] for row in read(sink.kept)] == [row["text"] for row in ROWS]


def test_nothing_is_left_where_nothing_was_done(tmp_path: Path) -> None:
    with pytest.raises(DataError), RowOutput(str(tmp_path / "out.csv"), "csv"):
        raise DataError("no row can be read")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_waits_until_rows_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.dumps

    def interrupted(*args: Any, **more: Any) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return whole(*args, **more)

    monkeypatch.setattr("fairtune.classifier.row_output.json.dumps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out.jsonl")
    monkeypatch.undo()
    assert len(read(tmp_path / "out.partial.jsonl")) == 3


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", "", "no header"),
        ("a.csv", "text,n\n", "there are no rows"),
        ("a.csv", "text,text\na,b\n", "'text' is there more than once"),
        ("a.csv", "text,n\na,1\nb\n", r"row 2 \(line 3\) has 1 fields, the header has 2"),
        ("a.csv", 'text\n"a\n', "line 2 is not closed"),
        ("a.jsonl", "", "there are no rows"),
        ("a.jsonl", "[1]\n", "line 1 is not a JSON mapping"),
        ("a.jsonl", '{"text": null}', "row 1: column 'text' has no text; fill or remove the row"),
        ("a.jsonl", '{"text": "a"}\n{"txt": "b"}', "row 2: no column 'text'; columns: txt. Did you mean 'txt'"),
        ("a.jsonl", '{"text": 5}', "row 1: column 'text' holds 5, not a text"),
        ("a.jsonl", '{"text": "\\ud83d"}', "row 1: .* half a character"),
        ("a.parquet", "none", "not a readable Parquet file"),
        ("a.csv.gz", "none", "gzip file is damaged"),
        (
            "a.xlsx",
            "none",
            r"unknown format '.xlsx'; allowed: .csv, .tsv, .jsonl, .parquet, .txt, each also .gz. Or say",
        ),
    ],
)
def test_bad_files_are_refused_in_a_sentence(name: str, content: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=expected):
        _ = [found.texts(["text"]) for found in RowReader(str(tmp_path / name))]


def test_bytes_that_are_not_utf8_are_reported_with_their_line(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.jsonl.gz", "wb") as handle:
        handle.write(b'{"text": "a"}\n{"text": "\xff"}\n')
    with pytest.raises(DataError, match=r"line 2 is not UTF-8 \(byte 0xff"):
        read(tmp_path / "a.jsonl.gz")


@pytest.mark.parametrize(
    ("source", "given", "expected"),
    [
        ("-", "parquet", "cannot be read from standard input"),
        ("-", "jsonn", "allowed: csv, tsv, jsonl, parquet, txt. Did you mean 'json"),
        ("nothing.csv", None, "there is no such file"),
        (".", "csv", "that is a folder"),
    ],
)
def test_inputs_that_cannot_be_are_refused(source: str, given: str | None, expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        RowReader(source, given)


def test_outputs_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"allowed: .csv, .tsv, .jsonl, .parquet, each also .gz. Or write to standard output"
    ):
        RowOutput("out.txt", "csv")
    with pytest.raises(DataError, match="that is a folder"), RowOutput(str(_folder(tmp_path / "out.csv")), "csv"):
        pass
    with (
        pytest.raises(DataError, match="cannot be written: No such file"),
        RowOutput(str(tmp_path / "no" / "o.csv"), "csv"),
    ):
        pass


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
