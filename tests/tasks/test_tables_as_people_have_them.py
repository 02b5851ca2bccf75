"""Tables as spreadsheets, other countries and other systems write them are read as they are meant, or refused with the way on."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from fairtune.classifier.labelled import read_labelled
from fairtune.core.errors import DataError, FairtuneError
from fairtune.tasks import load_task
from fairtune.tasks.column_choice import describe_file
from fairtune.tasks.reading.reader import RowReader, form_note

ROWS = [(f"número {n}, said “{word}”; so|so\tor so", word) for n in range(20) for word in ("gut", "schlecht")]


def cell(text: str, separator: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in f'{separator}"\n') else text


def table(separator: str = ",", end: str = "\n", rows: list[tuple[str, str]] = ROWS) -> str:
    lines = [("text", "label"), *rows]
    return "".join(separator.join(cell(part, separator) for part in row) + end for row in lines)


def as_task(file: Path, **more: Any) -> Any:
    return load_task({"train": str(file), "validation": str(file), "test": str(file), **more})


def write(folder: Path, content: bytes, name: str = "d.csv") -> Path:
    file = folder / name
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return file


@pytest.mark.parametrize("separator", ",;\t|")
@pytest.mark.parametrize(("end", "name"), [("\n", "d.tsv"), ("\r\n", "d.csv.gz")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-marked"])
def test_every_separator_line_end_and_mark_gives_the_same_task(
    tmp_path: Path, separator: str, end: str, encoding: str, name: str
) -> None:
    text = table(separator, end)
    content = b"\xfe\xff" + text.encode("utf-16-be") if encoding == "utf-16-be-marked" else text.encode(encoding)
    file = write(tmp_path, content, name)
    found = as_task(file)
    assert found.labels == ("gut", "schlecht")
    assert [texts[0] for texts in found.splits["train"].texts] == [text for text, _ in ROWS]
    assert list(read_labelled(file, ["text"], "label").texts["text"]) == [text for text, _ in ROWS]
    facts = describe_file(file)
    assert (list(facts.columns), facts.delimiter, facts.rows, facts.whole) == (["text", "label"], separator, 40, True)
    assert facts.columns["label"].values == {"gut": 20, "schlecht": 20}


def test_what_was_recognised_is_said(tmp_path: Path) -> None:
    plain = RowReader(str(write(tmp_path, table().encode())))
    assert form_note(plain) is None
    other = RowReader(str(write(tmp_path, table(";").encode("utf-16"), "e.csv")))
    assert str(form_note(other)).endswith("e.csv: read as encoded as utf-16 and its columns separated by semicolons.")


def test_an_old_encoding_is_refused_with_what_it_would_read_and_then_read_as_told(tmp_path: Path) -> None:
    file = write(tmp_path, table(";").encode("cp1252"))
    with pytest.raises(DataError) as caught:
        as_task(file)
    message = str(caught.value)
    assert "line 2 is not UTF-8 (byte 0xfa at column" in message
    assert "número 0" in message, "the user can tell whether that is right"
    assert "encoding: windows-1252" in message
    for name in ("windows-1252", "latin-1"):
        found = as_task(file, encoding=name)
        assert found.splits["train"].texts[0] == (ROWS[0][0],), "its quotes are no control characters"
    assert read_labelled(file, ["text"], "label", encoding="latin1").texts["text"][0] == ROWS[0][0]


def test_a_wrong_encoding_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, table().encode())
    for name, hint in (("windows-1259", "Did you mean 'windows_125"), ("hex", "cp1252\\.$")):
        with pytest.raises(FairtuneError, match=rf"unknown encoding '{name}'.*{hint}"):
            RowReader(str(file), encoding=name)
        with pytest.raises(ValueError, match="unknown encoding"):
            as_task(file, encoding=name)
    for name in ("windows-1252", "utf-16"):  # which needs a mark at the beginning
        with pytest.raises(DataError, match=r"not encoded as was said .*name another encoding, or save it as UTF-8"):
            list(RowReader(str(write(tmp_path, b"text,label\n\x81\x8d,a\n", "e.csv")), encoding=name))
    found = as_task(write(tmp_path, table().encode("utf-16-le"), "f.csv"), encoding="utf-16-le")
    assert found.labels == ("gut", "schlecht")


@pytest.mark.parametrize(
    "content",
    ["text\na;b\nc\n", "is it; or not\nyes\nno; never\n", "a;\nb;c\n", "who|what\nme\n"],
)
def test_a_table_of_one_column_stays_one(tmp_path: Path, content: str) -> None:
    reader = RowReader(str(write(tmp_path, content.encode())))
    assert reader.delimiter == ","
    assert next(iter(reader)).columns == [content.partition("\n")[0]]


def test_a_column_that_is_there_is_never_taken_apart(tmp_path: Path) -> None:
    file = write(tmp_path, b"a;b\n1;2\n3;4\n")
    assert [batch.values("a;b") for batch in RowReader(str(file), columns=["a;b"])] == [["1;2", "3;4"]]
    assert [batch.values("a") for batch in RowReader(str(file), columns=["a"])] == [["1", "3"]]


def test_a_separator_in_a_text_without_quotes_is_named_with_its_row(tmp_path: Path) -> None:
    file = write(tmp_path, b"text;label\nfine;a\nwell; then;b\n")
    with pytest.raises(DataError, match=r"row 2 \(line 3\) has 3 fields, the header has 2; quote texts"):
        as_task(file)
    with pytest.raises(DataError, match=r"no column 'text', 'label'; columns: text;label\. That is one column"):
        read_labelled(file, ["text"], "label")


@pytest.mark.parametrize("word", ["", "  ", "NaN", "NA", "N/A", "null", "None", "nan", "NULL", "<NA>"])
def test_words_for_nothing_are_missing_labels(tmp_path: Path, word: str) -> None:
    rows = [*ROWS, ("first", word), ("second", word)]
    file = write(tmp_path, table(rows=rows).encode())
    with pytest.raises(DataError) as caught:
        as_task(file)
    message = str(caught.value)
    assert "d.csv: column 'label' has no label in 2 of 42 rows (rows 41, 42" in message
    assert "leave them out with `unlabelled: skip` in the task" in message
    assert ("list all classes under `labels`" in message) == bool(word.strip())
    found = as_task(file, unlabelled="skip")
    assert len(found.splits["train"]) == 40
    assert found.labels == ("gut", "schlecht")
    assert found.notes[0] == "2 of 42 rows of d.csv have no label and were left out (rows 41, 42)"
    assert as_task(file, unlabelled="skip").notes == found.notes, "also from the cache"
    with pytest.raises(DataError, match="leave them out with `--skip-unlabelled`"):
        read_labelled(file, ["text"], "label")
    assert read_labelled(file, ["text"], "label", skip_unlabelled=True).without == (41, 42)


def test_missing_labels_are_counted_in_the_whole_file_whatever_is_held_out(tmp_path: Path) -> None:
    rows = [(f"text {n}", "" if n % 10 == 0 else "ab"[n % 2]) for n in range(200)]
    file = write(tmp_path, table(rows=rows).encode())
    with pytest.raises(DataError, match=r"no label in 20 of 200 rows \(rows 1, 11, 21, 31, 41 \.\.\.\)"):
        load_task({"train": str(file)})


def test_a_class_that_is_listed_is_one_whatever_it_is_called(tmp_path: Path) -> None:
    rows = [(f"text {n}", ("NA", "None", "DE")[n % 3]) for n in range(30)]
    file = write(tmp_path, table(rows=rows).encode())
    found = as_task(file, labels=["DE", "NA", "None"])
    assert found.labels == ("DE", "NA", "None")
    assert found.notes == ()
    with pytest.raises(
        DataError, match=r"no label in 10 of 30 rows \(rows 2, 5, 8, 11, 14 \.\.\.; 'None' counts as none\)"
    ):
        as_task(file, labels=["DE", "NA"])
    assert set(read_labelled(file, ["text"], "label", classes=["NA", "None"]).labels) == {"NA", "None", "DE"}
    lower = write(tmp_path, table(rows=[(f"text {n}", ("none", "favor ")[n % 2]) for n in range(30)]).encode(), "e.csv")
    assert as_task(lower).labels == ("favor", "none"), "a stance, not a gap"
    assert set(read_labelled(lower, ["text"], "label").labels) == {"favor", "none"}


def test_numbers_with_a_point_are_classes_and_the_same_ones_in_every_format(tmp_path: Path) -> None:
    csv = write(tmp_path, table(rows=[(f"text {n}", f"{n % 2}.0") for n in range(20)]).encode())
    frame = pa.table({"text": [f"text {n}" for n in range(20)], "label": [float(n % 2) for n in range(20)]})
    parquet.write_table(frame, tmp_path / "d.parquet")
    lines = "".join(json.dumps({"text": f"text {n}", "label": n % 2}) + "\n" for n in range(20))
    jsonl = write(tmp_path, lines.encode(), "d.jsonl")
    assert as_task(csv).labels == ("0.0", "1.0"), "as the file has them, as ever: studies of such files keep their keys"
    assert as_task(tmp_path / "d.parquet").labels == as_task(jsonl).labels == ("0", "1")
    files = {"train": str(csv), "validation": str(jsonl), "test": str(tmp_path / "d.parquet")}
    mixed = load_task(files)
    assert [int(label) for label in mixed.splits["test"].labels] == [n % 2 for n in range(20)]
    assert load_task(files | {"train": str(jsonl), "validation": str(csv)}).labels == ("0", "1")
    both = write(
        tmp_path, table(rows=[(f"text {n}", ("1", "0", "1.0", "0.0")[n % 4]) for n in range(20)]).encode(), "e.csv"
    )
    assert as_task(both).labels == ("0", "1")
    assert sorted(set(read_labelled(both, ["text"], "label").labels)) == ["0", "1"]
    trained = read_labelled(csv, ["text"], "label")
    assert set(read_labelled(tmp_path / "d.parquet", ["text"], "label").with_labels_of(trained).labels) == {
        "0.0",
        "1.0",
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbf", "the file is empty"),
        (b'text;label\n"one;a\ntwo;b\n', "a quote that is opened in the row of line 2 is not closed"),
        (b"text;label\n" + b"x" * 10_000_000 + b";a\n", "line 2 is longer than"),
        (b"x" * 10_000_000, "line 1 is longer than"),
        (b"\0" * 100, "no column 'text'"),
    ],
)
def test_hostile_tables_are_refused_in_a_sentence(tmp_path: Path, content: bytes, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        as_task(write(tmp_path, content))
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, b"text;label;label\none;a;b\n")
    with pytest.raises(DataError, match="column 'label' is there more than once"):
        read_labelled(file, ["text"], "label")
    with pytest.raises(DataError, match="column 'label' is there more than once"):
        as_task(file)


def test_a_file_is_described_by_its_columns(tmp_path: Path) -> None:
    lines = [{"id": 1, "text": "one"}, {"id": 2, "text": "three", "label": None}, {"id": 3, "text": "NA", "label": "x"}]
    file = write(tmp_path, "".join(json.dumps(line) + "\n" for line in lines).encode(), "d.jsonl")
    facts = describe_file(file)
    assert (facts.format, facts.delimiter, facts.rows) == ("jsonl", None, 3)
    assert facts.columns["label"].filled == 1
    assert facts.columns["text"].mean_length == 4.0
    assert facts.columns["text"].filled == 2
    assert not facts.columns["id"].texts
    some = describe_file(file, most=2)
    assert (some.rows, some.whole, some.columns["text"].filled) == (2, False, 2)
