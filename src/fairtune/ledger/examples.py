"""The scored examples of a study as texts, kept once beside its runs, so that a report can show what was got wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.errors import LedgerError
from fairtune.core.files import write_atomically

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
    """Keep examples and what is known of them, in a file whose pages have checksums."""
    import pyarrow as pa  # here, since many commands never read a text
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
    types = [(name, getattr(pa, dtype)()) for name, dtype in COLUMNS.items()]
    schema = pa.schema(types, {ABOUT: json.dumps(asdict(about)).encode()})
    content = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns, schema), content, compression="zstd", write_page_checksum=True)
    write_atomically(path, content.getvalue().to_pybytes())


def about_examples(path: Path) -> AboutExamples | None:
    """What the file says of itself; None where there is none, or it is not what was written."""
    try:
        return _read(path)[0]
    except LedgerError:
        return None


def read_examples(path: Path, split: str) -> Examples:
    """The examples of a split."""
    rows = [row for row in _read(path)[1].to_pylist() if row["split"] == split]
    return Examples(
        ids=tuple(row["id"] for row in rows),
        texts=tuple((row["text"],) if row["pair"] is None else (row["text"], row["pair"]) for row in rows),
        labels=np.array([row["label"] for row in rows], np.int64),
        kinds=tuple(row["kind"] for row in rows),
        tokens=np.array([row["tokens"] for row in rows], np.int32),
    )


def _read(path: Path) -> tuple[AboutExamples, Any]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(path.read_bytes()), page_checksum_verification=True)
        about = json.loads(file.schema_arrow.metadata[ABOUT])
        return AboutExamples(**{one.name: about[one.name] for one in fields(AboutExamples)}), file.read(
            use_threads=False
        )
    except (OSError, pa.ArrowException, LookupError, ValueError, TypeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise LedgerError(
            f"{path}: the examples cannot be read ({reason}); run the study again to rewrite them."
        ) from None
