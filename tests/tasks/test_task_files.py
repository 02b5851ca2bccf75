"""Tasks made of a user's files: every format gives the same task, every fault a clear message."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from fairtune.core.errors import DataError
from fairtune.settings.file_task import FileTask
from fairtune.tasks import load_task
from fairtune.tasks.problems import TaskError
from fairtune.tasks.task import Task

ROWS = [
    {"text": f"{word} number {i}, with a comma and “quotes”\nand a second line\tand a tab", "label": word}
    for i in range(60)
    for word in ("good", "bad")
]


def write_rows(file: Path, rows: list[dict[str, Any]], newline: str = "\n", encoding: str = "utf-8") -> Path:
    """The rows in the format that the file's name says."""
    plain = file.with_suffix("") if file.suffix == ".gz" else file
    if plain.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(rows), plain)
    elif plain.suffix == ".jsonl":
        plain.write_text("".join(json.dumps(row) + newline for row in rows), encoding=encoding)
    else:
        with plain.open("w", newline="", encoding=encoding) as handle:
            delimiter = "\t" if plain.suffix == ".tsv" else ","
            writer = csv.DictWriter(handle, rows[0], delimiter=delimiter, lineterminator=newline)
            writer.writeheader()
            writer.writerows(rows)
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    return file


def load(file: Path, **fields: Any) -> Task:
    return load_task(FileTask(**{"train": str(file), "text": "text", **fields}))


FORMATS = [f".{kind}{gz}" for kind in ("csv", "tsv", "jsonl", "parquet") for gz in ("", ".gz")]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> str:
    return load(write_rows(tmp_path_factory.mktemp("reference") / "data.jsonl", ROWS)).fingerprint


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_same_task(tmp_path: Path, suffix: str, reference: str) -> None:
    task = load(write_rows(tmp_path / f"data{suffix}", ROWS))
    assert task.fingerprint == reference
    assert sum(len(split) for split in task.splits.values()) == len(ROWS)


@pytest.mark.parametrize(("newline", "encoding"), [("\r\n", "utf-8"), ("\n", "utf-8-sig"), ("\r\n", "utf-8-sig")])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".csv.gz"])
def test_line_ends_and_byte_order_marks_do_not_matter(
    tmp_path: Path, suffix: str, newline: str, encoding: str, reference: str
) -> None:
    assert load(write_rows(tmp_path / f"data{suffix}", ROWS, newline, encoding)).fingerprint == reference


def test_the_suffix_may_be_upper_case_and_blank_lines_are_no_rows(tmp_path: Path) -> None:
    file = tmp_path / "DATA.CSV"
    file.write_text("text,label\na x,p\n\nb x,n\n\n")
    task = load(file, validation=str(file), test=str(file))
    assert task.splits["train"].texts[:] == [("a x",), ("b x",)]


def test_the_fingerprint_changes_with_any_text_label_or_order(tmp_path: Path, reference: str) -> None:
    changed = [dict(row) for row in ROWS]
    changed[5]["text"] += "."
    flipped = [dict(row) for row in ROWS]
    flipped[5]["label"] = "good" if flipped[5]["label"] == "bad" else "bad"
    for name, rows in (("a", changed), ("b", flipped), ("c", ROWS[::-1]), ("d", ROWS[:-1])):
        assert load(write_rows(tmp_path / f"{name}.csv", rows)).fingerprint != reference


def test_a_pair_has_two_texts(tmp_path: Path) -> None:
    rows = [{"a": f"first {i}", "b": f"second {i}", "gold": i % 3} for i in range(60)]
    file = write_rows(tmp_path / "pairs.csv", rows)
    task = load(file, validation=str(file), test=str(file), text=["a", "b"], label="gold")
    assert task.splits["test"].texts[7] == ("first 7", "second 7")
    assert task.labels == ("0", "1", "2")
    assert list(task.splits["test"].labels[:4]) == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["10", "9", "2"], ("2", "9", "10")),
        (["-1", "1"], ("-1", "1")),
        (["pos", "neg"], ("neg", "pos")),
        (["b", "a10", "a9"], ("a10", "a9", "b")),
    ],
)
def test_labels_are_ordered_by_number_or_by_name(tmp_path: Path, values: list[str], names: tuple[str, ...]) -> None:
    file = write_rows(tmp_path / "d.csv", [{"text": f"t{i}", "label": v} for i, v in enumerate(values)])
    assert load(file, validation=str(file), test=str(file)).labels == names


def test_given_labels_fix_the_class_numbers(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "d.csv", [{"text": f"t{i}", "label": v} for i, v in enumerate("abba")])
    task = load(file, validation=str(file), test=str(file), labels=["b", "a"])
    assert task.labels == ("b", "a")
    assert list(task.splits["train"].labels) == [1, 0, 0, 1]


def test_holdout_keeps_equal_texts_together_and_takes_its_shares(tmp_path: Path) -> None:
    rows = [{"text": f"text {i // 2}" + (" " if i % 2 else ""), "label": i // 2 % 2} for i in range(4000)]
    task = load(write_rows(tmp_path / "d.csv", rows))
    seen = {name: {t[0].strip() for t in split.texts} for name, split in task.splits.items()}
    assert not seen["train"] & seen["test"]
    assert not seen["train"] & seen["validation"]
    assert not seen["validation"] & seen["test"]
    assert len(task.splits["test"]) / 4000 == pytest.approx(0.2, abs=0.02)
    assert len(task.splits["validation"]) / 4000 == pytest.approx(0.1, abs=0.02)


def test_holdout_of_a_row_does_not_depend_on_the_other_rows(tmp_path: Path) -> None:
    rows = [{"text": f"text {i}", "label": i % 2} for i in range(1000)]
    whole, half = (load(write_rows(tmp_path / f"{n}.csv", rows[:n])) for n in (1000, 500))
    for name in ("train", "validation", "test"):
        assert set(half.splits[name].texts) <= set(whole.splits[name].texts)


def test_a_split_with_a_file_of_its_own_is_not_held_out(tmp_path: Path) -> None:
    train = write_rows(tmp_path / "train.csv", ROWS)
    test = write_rows(tmp_path / "test.csv", ROWS[:10])
    task = load(train, test=str(test), holdout={"validation": 0.3})
    assert len(task.splits["test"]) == 10
    assert len(task.splits["train"]) + len(task.splits["validation"]) == len(ROWS)
    assert task.splits["test"].ids[0] == "test-1"


def test_facts_tell_what_was_read(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "train.csv", ROWS)
    facts = load(file, validation=str(file), test=str(file), name="mine", metric="mcc").facts()
    assert (facts.name, facts.metric, facts.labels) == ("mine", "mcc", ("bad", "good"))
    assert facts.rows == {"train": 120, "validation": 120, "test": 120}
    assert "train.csv" in facts.source


HEADER = "text,label\n"
GOOD_ROWS = "one,a\ntwo,b\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("d.csv", None, ["there is no such file"]),
        ("d.csv", b"", ["the file is empty"]),
        ("d.jsonl", b"", ["has no rows"]),
        ("d.csv", HEADER, ["has no rows"]),
        ("d.csv", "texts,label\n" + GOOD_ROWS, ["no column 'text'", "texts, label", "Did you mean 'texts'?"]),
        ("d.csv", "text,lable\n" + GOOD_ROWS, ["no column 'label'", "Did you mean 'lable'?"]),
        ("d.jsonl", '{"text": "a", "label": 1}\n{"txt": "b", "label": 0}\n', ["line 2", "no column 'text'", "'txt'"]),
        ("d.csv", HEADER + "one,a\n,b\n  ,a\n", ["column 'text' has no text in 2 of 3 rows", "rows 2, 3", "fill or"]),
        ("d.csv", HEADER + "one,a\ntwo,\n", ["column 'label' has no label in 1 of 2 rows", "rows 2"]),
        ("d.jsonl", '{"text": null, "label": 1}\n{"text": "b", "label": 0}\n', ["no text in 1 of 2 rows (rows 1)"]),
        ("d.jsonl", '{"text": NaN, "label": 1}\n{"text": "b", "label": 0}\n', ["no text in 1 of 2 rows (rows 1)"]),
        ("d.jsonl", '{"text": 7, "label": 1}\n{"text": "b", "label": 0}\n', ["row 1", "holds 7, not a text"]),
        ("d.jsonl", '{"text": "a", "label": 1}\n{"text": \n', ["line 2 is not JSON"]),
        ("d.jsonl", '{"text": "a", "label": 1}\n[1, 2]\n', ["line 2 is not a JSON mapping"]),
        ("d.csv", HEADER + "one,a\ntwo,a\n", ["one class only ('a')", "two or more are needed"]),
        ("d.csv", b"text,label\none,a\ncaf\xe9,b\n", ["line 3 is not UTF-8", "0xe9 at column 4", "save it as UTF-8"]),
        ("d.jsonl", b'{"text": "caf\xe9", "label": 1}\n', ["line 1 is not UTF-8"]),
        ("d.csv", HEADER + "one,a\ntwo, three,b\n", ["row 2 (line 3) has 3 fields, the header has 2", "quote texts"]),
        ("d.csv", HEADER + "one,a\ntwo\n", ["row 2 (line 3) has 1 fields"]),
        ("d.csv", HEADER + 'one,a\n"two,b\n', ["line 3"]),
        ("d.csv.gz", b"not a gzip file", ["gzip file is damaged"]),
        ("d.parquet", b"PAR1 this is none", ["not a readable Parquet file"]),
        ("d.xlsx", b"x", ["unknown format '.xlsx'", ".csv, .tsv, .jsonl, .parquet", "also .gz"]),
        ("d.gz", b"x", ["unknown format", ".csv"]),
        ("data", b"x", ["unknown format 'data'"]),
    ],
)
def test_a_bad_file_gets_one_clear_message(
    tmp_path: Path, name: str, content: str | bytes | None, words: list[str]
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        load(file, validation=str(file), test=str(file))
    message = str(caught.value)
    assert message.startswith(str(file))
    assert "\n" not in message
    for word in words:
        assert word in message


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    write_rows(tmp_path / "train.csv", ROWS)
    with pytest.raises(DataError, match=r"no such file\. Did you mean '.*train\.csv'"):
        load(tmp_path / "trian.csv")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("fault", ["cut off", "damaged"])
def test_a_broken_gzip_file_is_reported(tmp_path: Path, kind: str, fault: str) -> None:
    generator = np.random.default_rng(0)
    rows = [{"text": " ".join(map(str, generator.integers(0, 10**9, 20))), "label": i % 2} for i in range(400)]
    file = write_rows(tmp_path / f"d.{kind}.gz", rows)
    data = bytearray(file.read_bytes())
    if fault == "cut off":
        del data[len(data) // 2 :]
    else:
        data[10:40] = b"\xff" * 30  # right after the gzip header
    file.write_bytes(data)
    with pytest.raises(DataError, match="gzip file is damaged or cut off"):
        load(file)


def test_a_label_seen_only_in_test_is_refused(tmp_path: Path) -> None:
    train = write_rows(tmp_path / "train.csv", [{"text": f"t{i}", "label": "ab"[i % 2]} for i in range(9)])
    test = write_rows(tmp_path / "test.csv", [{"text": "u", "label": "a"}, {"text": "v", "label": "c"}])
    with pytest.raises(DataError) as caught:
        load(train, validation=str(train), test=str(test))
    assert str(caught.value).startswith(str(test))
    assert "label 'c' (1 row) in the test split" in str(caught.value)
    with pytest.raises(DataError, match=r"no training example has the label c; add some, or take it out of `labels`"):
        load(train, validation=str(train), test=str(test), labels=["a", "b", "c"])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"labels": ["a", "c"]}, "label 'b' .* not among those given: a, c"),
        ({"labels": ["a", "b", "c"]}, "no training example has the label c"),
        ({"labels": ["a", "a", "b"]}, "a is given twice"),
        ({"metric": "f1", "text": "other"}, "no column 'other'"),
    ],
)
def test_settings_that_do_not_fit_the_data_are_refused(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    file = write_rows(tmp_path / "d.csv", [{"text": f"t{i}", "label": "ab"[i % 2]} for i in range(30)])
    with pytest.raises(DataError, match=words):
        load(file, **{"validation": str(file), "test": str(file), **fields})


def test_shares_that_leave_nothing_to_train_on_are_refused() -> None:
    with pytest.raises(ValueError, match="leave nothing to train on"):
        FileTask(train="d.csv", holdout={"validation": 0.5, "test": 0.5})  # type: ignore[arg-type]


def test_everything_that_is_wrong_with_the_files_is_told_at_once(tmp_path: Path) -> None:
    train = write_rows(tmp_path / "train.csv", [{"body": "t", "label": ""}, {"body": "", "label": "a"}])
    with pytest.raises(TaskError) as caught:
        load(train, text="body", validation=str(tmp_path / "gone.csv"), test=str(train), kinds="kind")
    assert [field for field, _ in caught.value.problems] == ["validation", "kinds", *["train"] * 2, *["test"] * 2]


def test_f1_of_three_classes_is_refused(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "d.csv", [{"text": f"t{i}", "label": "abc"[i % 3]} for i in range(30)])
    with pytest.raises(DataError, match="metric: f1 is for two classes and this task has 3; use macro_f1"):
        load(file, validation=str(file), test=str(file), metric="f1")


def test_too_few_rows_to_hold_out_are_reported(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "d.csv", [{"text": "t", "label": "a"}, {"text": "t", "label": "b"}])
    with pytest.raises(DataError, match=r"too few rows \(2\) to hold out a .* split; give it a file"):
        load(file)


def test_an_unknown_task_names_the_catalogue() -> None:
    with pytest.raises(DataError, match=r"'movie-review': not in the catalogue.*Did you mean 'movie-reviews'.*train"):
        load_task("movie-review")
