"""Parquet has many types: those that are texts or single values are read, each other one is refused in a sentence that names it."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.tasks.test_task_files import load

from fairtune.classifier.labelled import read_labelled
from fairtune.classifier.row_output import RowOutput
from fairtune.core.errors import DataError
from fairtune.tasks.corpora import load_corpus
from fairtune.tasks.reading.reader import FIRST_ROWS, RowReader

N = 40
WORDS = [f"w{i % 2}" for i in range(N)]
BYTES = [word.encode() for word in WORDS]
NUMBERS = [i % 2 for i in range(N)]
DAY = datetime.date(2026, 1, 2)
MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5)


def array(values: list[Any], kind: Any) -> Any:
    return pa.array(values, kind)


TEXTS: dict[str, Callable[[], Any]] = {
    "string": lambda: array(WORDS, pa.string()),
    "large_string": lambda: array(WORDS, pa.large_string()),
    "string_view": lambda: array(WORDS, pa.string_view()),
    "dictionary": lambda: array(WORDS, pa.string()).dictionary_encode(),
    "binary": lambda: array(BYTES, pa.binary()),
    "large_binary": lambda: array(BYTES, pa.large_binary()),
    "binary_view": lambda: array(BYTES, pa.binary_view()),
    "fixed_size_binary": lambda: array(BYTES, pa.binary(2)),
}
"""Types that are texts and labels alike."""
LABELS: dict[str, Callable[[], Any]] = {
    "bool": lambda: array([bool(n) for n in NUMBERS], pa.bool_()),
    "int8": lambda: array(NUMBERS, pa.int8()),
    "uint64": lambda: array([2**64 - 1 - n for n in NUMBERS], pa.uint64()),
    "halffloat": lambda: array([float(n) for n in NUMBERS], pa.float16()),
    "double": lambda: array([float(n) for n in NUMBERS], pa.float64()),
    "dictionary of numbers": lambda: array(NUMBERS, pa.int32()).dictionary_encode(),
}
"""Types that are labels and no texts."""
OTHERS: dict[str, Callable[[], Any]] = {
    "null": lambda: array([None] * N, pa.null()),
    "decimal128": lambda: array([decimal.Decimal(n) for n in NUMBERS], pa.decimal128(5, 1)),
    "decimal256": lambda: array([decimal.Decimal(n) for n in NUMBERS], pa.decimal256(60, 1)),
    "date": lambda: array([DAY] * N, pa.date32()),
    "date beyond Python's": lambda: array([2**31 - 1] * N, pa.int32()).cast(pa.date32()),
    "time": lambda: array([MOMENT.time()] * N, pa.time64("ns")),
    "timestamp": lambda: array([MOMENT] * N, pa.timestamp("ms")),
    "timestamp with a zone": lambda: array([MOMENT] * N, pa.timestamp("ns", "Europe/Berlin")),
    "timestamp with an unknown zone": lambda: array([MOMENT] * N, pa.timestamp("us", "Nowhere/Land")),
    "timestamp beyond Python's": lambda: array([2**62] * N, pa.int64()).cast(pa.timestamp("ms")),
    "duration": lambda: array([datetime.timedelta(seconds=n) for n in NUMBERS], pa.duration("ns")),
    "duration beyond Python's": lambda: array([2**62] * N, pa.int64()).cast(pa.duration("s")),
    "bytes that are not UTF-8": lambda: array([b"\xff\xfe"] * N, pa.binary()),
    "list": lambda: array([[word] for word in WORDS], pa.list_(pa.string())),
    "large_list": lambda: array([[word] for word in WORDS], pa.large_list(pa.string())),
    "fixed_size_list": lambda: array([[word] for word in WORDS], pa.list_(pa.string(), 1)),
    "struct": lambda: array([{"a": word} for word in WORDS], pa.struct({"a": pa.string()})),
    "struct with a name twice": lambda: pa.StructArray.from_arrays(
        [array(WORDS, pa.string()), array(WORDS, pa.string())], names=["a", "a"]
    ),
    "map": lambda: array([[("a", word)] for word in WORDS], pa.map_(pa.string(), pa.string())),
    "uuid": lambda: array([bytes([n]) * 16 for n in NUMBERS], pa.uuid()),
    "json": lambda: array(WORDS, pa.json_()),
    "bool8": lambda: pa.ExtensionArray.from_storage(pa.bool8(), array(NUMBERS, pa.int8())),
}
"""Types that may be refused everywhere; some are labels."""
EVERY = {**TEXTS, **LABELS, **OTHERS}


def written(folder: Path, odd: Any) -> Path:
    """A file with a column of a type, and a text and a label beside it."""
    file = folder / "d.parquet"
    table = pa.table({"text": [f"text {i}" for i in range(N)], "label": WORDS, "odd": odd})
    pa.parquet.write_table(table, file)
    return file


def as_task(file: Path, **columns: str) -> Any:
    return load(file, validation=str(file), test=str(file), **columns)


def as_text(file: Path) -> Any:
    return as_task(file, text="odd").splits["train"].texts[:]


def as_label(file: Path) -> Any:
    return as_task(file, label="odd").labels


def as_documents(file: Path) -> Any:
    corpus = load_corpus({"kind": "language_model", "train": str(file), "text": "odd"})
    return [text for texts in corpus.documents("train") for text in texts]


def as_trained_label(file: Path) -> Any:
    return list(read_labelled(file, ["text"], "odd").labels)


def as_asked(file: Path) -> Any:
    return [text for records in RowReader(str(file)) for (text,) in records.texts(["odd"])]


ROLES = {role.__name__: role for role in (as_text, as_label, as_documents, as_trained_label, as_asked)}


def refusal(use: Callable[[Path], Any], file: Path) -> str | None:
    """What is said where a file cannot be used so."""
    try:
        use(file)
    except DataError as error:
        return str(error)
    return None


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("kind", EVERY)
def test_every_type_is_read_or_refused_in_a_sentence_that_names_the_column(kind: str, tmp_path: Path) -> None:
    try:
        file = written(tmp_path, EVERY[kind]())
    except pa.ArrowException as error:
        pytest.skip(f"this version of pyarrow does not write it: {error}")
    for role, use in ROLES.items():
        message = refusal(use, file)
        assert message is None or (message.startswith(str(file)) and "'odd'" in message and "\n" not in message), role


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_are_texts_however_they_are_kept(kind: str, tmp_path: Path) -> None:
    file = written(tmp_path, TEXTS[kind]())
    assert [text for (text,) in as_text(file)] == WORDS
    assert as_asked(file) == WORDS
    assert set(as_documents(file)) <= {"w0", "w1"}
    assert as_label(file) == ("w0", "w1")
    assert as_trained_label(file) == WORDS


@pytest.mark.parametrize("kind", ["bool", "int8", "halffloat", "double", "dictionary of numbers"])
def test_numbers_are_labels(kind: str, tmp_path: Path) -> None:
    file = written(tmp_path, LABELS[kind]())
    assert as_label(file) == (("False", "True") if kind == "bool" else ("0", "1"))
    assert as_trained_label(file) == NUMBERS


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed_size_list", "struct", "struct with a name twice", "map"])
@pytest.mark.parametrize("role", ROLES)
def test_what_is_not_one_value_is_refused_with_its_type_and_what_to_do(kind: str, role: str, tmp_path: Path) -> None:
    file = written(tmp_path, OTHERS[kind]())
    type_name = kind.split()[0] if role in ("as_text", "as_label", "as_documents") else ""
    with pytest.raises(DataError, match=f"'odd' has .*the Parquet type {type_name}.* write it as texts"):
        ROLES[role](file)


@pytest.mark.parametrize("target", ["out.parquet", "out.jsonl", "out.csv"])
@pytest.mark.parametrize("kind", ["list", "struct", "map", "decimal256", "binary", "uuid", "dictionary", "duration"])
def test_columns_that_are_not_asked_for_may_be_of_any_type(kind: str, target: str, tmp_path: Path) -> None:
    source = RowReader(str(written(tmp_path, EVERY[kind]())))
    with RowOutput(str(tmp_path / target), "parquet") as sink:
        for records in source:
            assert len(records.texts(["text"])) == N
            sink.write(records, {"predicted": [1] * N})
    if target.endswith("parquet"):
        out, given = (pa.parquet.read_table(tmp_path / name).column("odd") for name in (target, "d.parquet"))
        assert out.type == given.type
        assert out.equals(given) or out.cast(pa.string()).equals(given.cast(pa.string()))


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    columns = [array(WORDS, pa.string())] * 3
    pa.parquet.write_table(pa.Table.from_arrays(columns, names=["text", "label", "text"]), tmp_path / "d.parquet")
    for use in (lambda file: as_task(file), lambda file: list(RowReader(str(file)))):
        with pytest.raises(DataError, match=r"column 'text' is there more than once"):
            use(tmp_path / "d.parquet")


def test_rows_come_in_their_order_and_first_ones_soon_whatever_the_row_groups(tmp_path: Path) -> None:
    file, many = tmp_path / "d.parquet", 10_001
    table = pa.table(
        {
            "text": [f"text {i}" for i in range(many)],
            "word": pa.array(["a", "b", "c"][i % 3] for i in range(many)).dictionary_encode(),
        }
    )
    pa.parquet.write_table(table, file, row_group_size=777)
    found = list(RowReader(str(file)))
    assert [number for records in found for number in records.numbers] == list(range(1, many + 1))
    assert [row for records in found for row in records.rows] == table.to_pylist()
    assert [row for records in found for row in records.table.to_pylist()] == table.to_pylist()
    assert len(found[0]) <= FIRST_ROWS
    assert len(found) < 12, "later ones come many at a time"
