"""Data files of every format, damaged and hostile, in the hands of everybody who reads data: rows or a clean error come of it."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from fairtune.classifier.labelled import read_labelled
from fairtune.classifier.row_output import RowOutput
from fairtune.tasks.corpora import load_corpus
from fairtune.tasks.reading.reader import RowReader
from fairtune.tasks.reading.rows import read_rows
from fairtune.tasks.titles.files import read_titles
from tests.fuzz.mutating import damaged, damaged_json
from tests.fuzz.outcomes import Outcome, judge, put
from tests.fuzz.registering import target

ROWS = [
    {
        "text": f"text “{i}”, it's said\n\tand so on 😀",
        "label": "ab"[i % 2],
        "title": f"The Title Number {i}",
        "n": i / 2,
    }
    for i in range(12)
]


def _table(delimiter: str) -> bytes:
    quoted = [[f'"{value}"' if isinstance(value, str) else str(value) for value in row.values()] for row in ROWS]
    return "\n".join(delimiter.join(cells) for cells in [list(ROWS[0]), *quoted]).encode()


def _parquet() -> bytes:
    content = io.BytesIO()
    table = pa.Table.from_pylist(ROWS)
    more = {
        "word": pa.array([row["label"] for row in ROWS]).dictionary_encode(),
        "list": pa.array([[1, 2]] * len(ROWS)),
        "when": pa.array(range(len(ROWS)), pa.int64()).cast(pa.timestamp("us", "Europe/Berlin")),
    }
    for name, column in more.items():
        table = table.append_column(name, column)
    pa.parquet.write_table(table, content, row_group_size=5, compression="snappy")
    return content.getvalue()


@cache
def whole(kind: str) -> bytes:
    """A sound file of a format."""
    match kind:
        case "csv" | "tsv":
            return _table("," if kind == "csv" else "\t")
        case "jsonl":
            return "".join(json.dumps(row) + "\n" for row in ROWS).encode()
        case "parquet":
            return _parquet()
        case "bib":
            entries = "".join(
                f'@article{{k{i}, title = {{The {{Title}} \\"u {i}}}, year = "20" # {i}}}\n' for i in range(9)
            )
            return ("@string{x = {y}}\n@comment{z}\n" + entries).encode()
        case _:
            return "\n\n".join(row["text"] for row in ROWS).encode()


def _as_task(file: Path) -> Any:
    return len(read_rows(file, ["text"], "label", file.with_suffix(".aside")))


def _as_documents(file: Path) -> Any:
    spec = {"kind": "language_model", "train": str(file), "text": "text"}
    return [documents for split in ("train", "test") for documents in load_corpus(spec).documents(split)]


def _as_training(file: Path) -> Any:
    return len(read_labelled(file, ["text"], "label"))


def _as_questions(file: Path, out: str) -> Any:
    source = RowReader(str(file))
    with RowOutput(str(file.with_name(f"out.{out}")), source.format) as sink:
        for records in source:
            sink.write(records, {"predicted": [len(text) for (text,) in records.texts(["text"])]})
    return sink.rows


def _as_titles(file: Path) -> Any:
    return len(read_titles([file]))


READERS: dict[str, list[Callable[[Path], Any]]] = {
    "table": [
        _as_task,
        _as_documents,
        _as_training,
        lambda file: _as_questions(file, "jsonl"),
        lambda file: _as_questions(file, "csv"),
        lambda file: _as_questions(file, "parquet"),
        _as_titles,
    ],
    "txt": [_as_documents, lambda file: _as_questions(file, "csv"), _as_titles],
    "bib": [_as_titles],
}


def tried(kind: str, seed: int, folder: Path, packed: bool = False) -> Outcome | None:
    """Damage a file of a format, and read it as one of those who read it."""
    dice = random.Random(seed)
    before = gzip.compress(whole(kind), 1, mtime=0) if packed else whole(kind)
    if packed and dice.random() < 0.3:
        after = gzip.compress(damaged(whole(kind), seed), 1, mtime=0)
    elif kind == "jsonl" and dice.random() < 0.5:
        rows = [json.dumps(row).encode() for row in ROWS]
        place = dice.randrange(len(rows))
        rows[place] = damaged_json(ROWS[place], seed)
        after = b"\n".join(rows)
        after = gzip.compress(after, 1) if packed else after
    else:
        after = damaged(before, seed)
    file = put(folder / f"d.{kind}{'.gz' if packed else ''}", after)
    readers = READERS.get(kind, READERS["table"])
    read = readers[seed % len(readers)]
    return judge(file.name, before, after, lambda: read(file))


for _kind, _seeds in {"csv": 60, "tsv": 30, "jsonl": 80, "parquet": 120, "txt": 30, "bib": 40}.items():
    target(_kind, _seeds)(lambda seed, folder, kind=_kind: tried(kind, seed, folder))  # type: ignore[misc]
    target(f"{_kind}.gz", 20)(lambda seed, folder, kind=_kind: tried(kind, seed, folder, packed=True))  # type: ignore[misc]
