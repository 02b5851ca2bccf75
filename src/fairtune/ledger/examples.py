"""The scored examples of a study as texts, kept once beside its runs, so that a report can show what was got wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.errors import LedgerError
from fairtune.files import write_atomically

FILE = "examples.parquet"
ABOUT = b"fairtune"
COLUMNS = {
    "id": "string", "split": "string", "text": "large_string", "pair": "large_string", "label": "int64", "kind": "large_string",
    "tokens": "int32",
}  # fmt: skip
"""Names and types."""


@dataclass(frozen=True)
class Examples:
    """Examples of one split.

    Args:
        texts: one, or the two of a pair, each perhaps cut.
        kinds: of what kind each is; None where nothing says it.
        tokens: of the whole text.
    """

    ids: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    labels: npt.NDArray[np.int64]
    kinds: tuple[str | None, ...]
    tokens: npt.NDArray[np.int32]


@dataclass(frozen=True)
class AboutExamples:
    """What is known of the file.

    Args:
        key: of everything that it was made from.
        scored: examples of each split that are scored, of which only so many may be kept.
        tokenizer: whose tokens are counted.
        problem: why it holds nothing.
    """

    key: str
    scored: dict[str, int]
    tokenizer: str | None = None
    problem: str | None = None


def write_examples(path: Path, about: AboutExamples, splits: Mapping[str, Examples]) -> None:
    """Write the examples of some splits into one file."""
    import pyarrow as pa
    from pyarrow import parquet

    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for split, part in splits.items():
        columns["id"] += part.ids
        columns["split"] += [split] * len(part.ids)
        columns["text"] += [texts[0] for texts in part.texts]
        columns["pair"] += [texts[1] if len(texts) > 1 else None for texts in part.texts]
        columns["label"] += part.labels.tolist()
        columns["kind"] += part.kinds
        columns["tokens"] += part.tokens.tolist()
    known = {ABOUT: json.dumps(about.__dict__).encode()}
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in COLUMNS.items()], known)
    content = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns, schema), content, compression="zstd")
    write_atomically(path, content.getvalue().to_pybytes())


def about_examples(path: Path) -> AboutExamples | None:
    """What the file says of itself; None where there is none that can be read."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        found = (parquet.read_schema(path).metadata or {}).get(ABOUT)
        return None if found is None else AboutExamples(**json.loads(found))
    except (OSError, pa.ArrowException, ValueError, TypeError):
        return None


def read_examples(path: Path, split: str) -> Examples:
    """The examples of a split.

    Raises:
        LedgerError: the file is missing or damaged.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, filters=[("split", "=", split)]).select(list(COLUMNS))
    except (OSError, pa.ArrowException, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise LedgerError(
            f"{path}: the examples cannot be read ({reason}); run the study again to write them anew."
        ) from None
    pairs = zip(table["text"].to_pylist(), table["pair"].to_pylist(), strict=True)
    return Examples(
        ids=tuple(table["id"].to_pylist()),
        texts=tuple((text,) if pair is None else (text, pair) for text, pair in pairs),
        labels=table["label"].to_numpy().astype(np.int64),
        kinds=tuple(table["kind"].to_pylist()),
        tokens=table["tokens"].to_numpy().astype(np.int32),
    )
