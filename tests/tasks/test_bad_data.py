"""Data as users really have it: each fault is named in one sentence with its place; what can safely be fixed in silence is."""

from __future__ import annotations

import gzip
import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.tasks.test_task_files import ROWS, load, write_rows

from fairtune.core.errors import DataError
from fairtune.tasks.reading.files import LONGEST
from fairtune.tasks.reading.reader import RowReader
from fairtune.tasks.stores import file_texts

HEADER = b"text,label\n"
MANY = b"".join(b"text %d,%s\n" % (i, b"ab"[i % 2 : i % 2 + 1]) for i in range(30))


def refusal(file: Path, **fields: Any) -> str:
    """What is said of a file that cannot be used."""
    with pytest.raises(DataError) as caught:
        load(file, **fields)
    message = str(caught.value)
    assert message.startswith(str(file))
    assert "\n" not in message
    return message


def test_a_quote_left_open_in_a_large_file_is_reported_without_reading_it_all(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_bytes(HEADER + MANY + b'"and then,a\n' + MANY * 30_000)
    assert file.stat().st_size > 1.5 * LONGEST
    assert "a quote that is opened in the row of line 32 is not closed" in refusal(file)


def test_a_quote_that_ends_in_another_row_is_reported_with_both_places(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_bytes(HEADER + MANY + b'"opened,a\n' + MANY + b'a "quoted" word,b\n')
    assert "row that began on line 32" in refusal(file)
    file.write_bytes(HEADER + b'"opened,a\nsecond "",b\nthird",a\nfourth,b\n')
    task = load(file, validation=str(file), test=str(file))
    assert task.splits["train"].texts[0] == ('opened,a\nsecond ",b\nthird',), "a text may go over lines"


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".txt", ".csv.gz", ".jsonl.gz"])
def test_a_line_of_ten_megabytes_is_refused(tmp_path: Path, suffix: str) -> None:
    line = "x" * 10_000_000
    lines = {
        ".csv": f"text,label\nok,a\n{line},b\n",
        ".jsonl": json.dumps({"text": "ok", "label": "a"}) + "\n\n" + json.dumps({"text": line, "label": "b"}) + "\n",
        ".txt": f"ok\n\n{line}\n",
    }
    content = lines[suffix.removesuffix(".gz")].encode()
    file = tmp_path / f"d{suffix}"
    file.write_bytes(gzip.compress(content, 1) if suffix.endswith(".gz") else content)
    with pytest.raises(DataError, match=r"line 3 is longer than 4,194,304 characters.*Break the line or remove it"):
        for _ in RowReader(str(file), columns=["text"]):
            pass


def test_a_long_text_that_is_no_mistake_is_read(tmp_path: Path) -> None:
    rows = [{"text": "word " * 200_000 + str(i), "label": i % 2} for i in range(4)]
    file = write_rows(tmp_path / "d.csv", rows)
    assert len(load(file, validation=str(file), test=str(file)).splits["train"].texts[3][0]) == 1_000_001


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, "good", 0], ["several types", "'good' (row 2)"]),
        ([True, False, 1], ["several types", "'True' (row 1)", "'1' (row 3)"]),
        (["a", "b", None, 3], ["no label in"]),
        ([["a"], "b"], ["row 1: column 'label' holds ['a']; a label is one value"]),
        ([{"a": 1}, "b"], ["a label is one value"]),
    ],
)
def test_labels_of_several_types_are_refused(tmp_path: Path, values: list[Any], words: list[str]) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text("".join(json.dumps({"text": f"t{i}", "label": v}) + "\n" for i, v in enumerate(values * 10)))
    message = refusal(file, validation=str(file), test=str(file))
    assert all(word in message for word in words), message


def test_numbers_and_words_as_labels_are_refused_unless_they_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_bytes(HEADER + b"one,0\ntwo,1\nthree,open\n" * 5)
    other = {"validation": str(file), "test": str(file)}
    assert "'open' (row 3)" in refusal(file, **other)
    assert load(file, **other, labels=["0", "1", "open"]).labels == ("0", "1", "open")


def test_more_than_a_thousand_classes_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_bytes(HEADER + b"".join(b"text %d,label %d\n" % (i, i) for i in range(3000)))
    assert "column 'label' has more than 1,000 different labels (label " in refusal(
        file, validation=str(file), test=str(file)
    )
    file.write_bytes(HEADER + b"".join(b"text %d,label %d\n" % (i, i % 1000) for i in range(3000)))
    assert len(load(file, validation=str(file), test=str(file)).labels) == 1000


def test_half_a_character_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text('{"text": "fine", "label": 1}\n{"text": "cut \\ud83d", "label": 0}\n' * 5)
    message = refusal(file)
    assert "row 2: column 'text' holds half a character" in message


def test_a_nul_byte_is_reported_or_kept_but_no_crash(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_bytes(HEADER + MANY + b"a\0b,a\n")
    task = load(file, validation=str(file), test=str(file))
    assert task.splits["train"].texts[30] == ("a\0b",)


def test_a_folder_of_shards_is_one_file(tmp_path: Path) -> None:
    whole = load(write_rows(tmp_path / "whole.jsonl", ROWS), name="t")
    folder = tmp_path / "shards"
    folder.mkdir()
    for place, start in enumerate(range(0, len(ROWS), 50)):
        write_rows(folder / f"part-{place}.jsonl{'.gz' if place else ''}", ROWS[start : start + 50])
    (folder / ".hidden").write_text("not data")
    (folder / "_SUCCESS").write_text("")
    (folder / "README.md").write_text("not data")
    parts = load(folder, name="t")
    assert parts.fingerprint == whole.fingerprint
    assert {name: split.ids for name, split in parts.splits.items()} == {n: s.ids for n, s in whole.splits.items()}
    write_rows(folder / "part-9.csv", ROWS)
    assert "files of several formats (.csv, .jsonl); keep one format" in refusal(folder)


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", ROWS)
    (tmp_path / "b.jsonl").write_text("{broken")
    with pytest.raises(DataError, match=r"b\.jsonl: line 1 is not JSON"):
        load(tmp_path)


def test_plain_text_is_read_by_paragraph_whatever_the_line_ends(tmp_path: Path) -> None:
    for newline in ("\n", "\r\n"):
        file = tmp_path / "d.txt"
        file.write_bytes("\ufeffone\nmore\n\n\n  \ntwo\n\nthree".replace("\n", newline).encode())
        assert [*chain.from_iterable(file_texts(file, "text"))] == ["one\nmore", "two", "three"]


def test_the_second_start_reads_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_rows(tmp_path / "d.csv", ROWS)
    first = load(file)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr("fairtune.tasks.reading.reader.RowReader", refuse)
    again = load(file)
    assert again.facts() == first.facts()
    assert again.splits["train"].texts[:] == first.splits["train"].texts[:]


def test_a_file_that_changed_is_another_task(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "d.csv", ROWS)
    first = load(file).fingerprint
    write_rows(file, [*ROWS[:-1], {**ROWS[-1], "label": "good"}])
    assert load(file).fingerprint != first
    write_rows(file, ROWS)
    assert load(file).fingerprint == first


@pytest.mark.parametrize("block", [1 << 20, 100])
def test_a_row_that_is_wrong_is_named_after_many_that_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr("fairtune.tasks.reading.files.BLOCK", block)
    table, lines = tmp_path / "d.csv", tmp_path / "d.jsonl"
    table.write_text("text,label\n" + '"two\nlines",a\n\n' * 50 + "one,two,three\n")
    assert "row 101 (line 152) has 3 fields, the header has 2" in refusal(table)
    table.write_text("text,label\n" + '"two\nlines",a\n\nsay "x",b\n' * 50 + '"one"x,two\n')
    assert "on line 202" in refusal(table)
    lines.write_text('{"text": "t", "label": 1}\n' * 50 + '{"text": "t"}\n')
    assert "line 51: no column 'label'" in refusal(lines)
    lines.write_text('{"text": "t", "label": 1}\n' * 50 + '{"text": "t"\n')
    assert "line 51 is not JSON" in refusal(lines)
    lines.write_bytes(b'{"text": "t", "label": 1}\n' * 50 + b'{"text": "caf\xe9"\n')
    assert "line 51 is not UTF-8 (byte 0xe9 at column 14)" in refusal(lines)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_the_rows_do_not_depend_on_how_much_is_read_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    cells = ["plain", "a, b", 'say "x"', "", "über 😀", "two\n\nlines", "two\r\nlines", " spaces ", "null", "\ufeffx"]
    rows = [{"text": cells[i % len(cells)], "label": f"{i % 3}.0"} for i in range(200)]
    file = write_rows(tmp_path / f"d{suffix}", rows)
    for block in (1 << 20, 61):
        monkeypatch.setattr("fairtune.tasks.reading.files.BLOCK", block)
        for columns in (["text", "label"], None):
            found = list(RowReader(str(file), columns=columns))
            assert [row for batch in found for row in batch.rows] == rows
            assert [number for batch in found for number in batch.numbers] == list(range(1, 201))
