"""Predictions on disk, which every figure is recomputed from, and the texts that were scored, for readers of mistakes.

A classifier leaves id, label and scores of every example; a language model leaves sums over each document. The texts are kept once
beside a study's runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute, parquet

from fairtune.core.errors import LedgerError
from fairtune.core.files import write_atomically
from fairtune.settings.metrics import predicted_classes

EXAMPLES_FILE = "examples.parquet"
ABOUT = b"fairtune"
KEPT = {
    "id": "string", "split": "string", "text": "large_string", "pair": "large_string", "label": "int64", "kind": "large_string",
    "tokens": "int32",
}  # fmt: skip
"""Names and types of what is kept of an example."""
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Predictions:
    """Scores (logits) of one split.

    Args:
        line: at which two classes are told apart, where the analysis has moved it; what is stored has none.
    """

    ids: tuple[str, ...]
    labels: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]
    line: float = 0.0

    @cached_property
    def predicted(self) -> npt.NDArray[np.int64]:
        """The class that is said of each example."""
        return predicted_classes(self.scores, self.line)


@dataclass(frozen=True)
class TextScores:
    """How well a language model predicted the documents of one split.

    Args:
        nll: losses in nats, summed over the tokens of the document's text.
        tokens, bytes, words: of the text alone, without EOS and BOS.
        correct: tokens that were the most likely one.
    """

    ids: tuple[str, ...]
    nll: npt.NDArray[np.float64]
    tokens: Counts
    bytes: Counts
    words: Counts
    correct: Counts


COUNTS = ("tokens", "bytes", "words", "correct")
SUMS = ("nll", *COUNTS)


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


def write_predictions(path: Path, splits: Mapping[str, Predictions | TextScores]) -> None:
    """Write what the splits of one run scored, all of one type."""
    texts = [part for part in splits.values() if isinstance(part, TextScores)]
    classified = [part for part in splits.values() if isinstance(part, Predictions)]
    columns: dict[str, Any] = {
        "split": pa.array([name for name, part in splits.items() for _ in part.ids], pa.string()),
        "id": pa.array([i for part in splits.values() for i in part.ids], pa.string()),
    }
    for name in SUMS if texts else ():
        dtype = pa.int64() if name in COUNTS else pa.float64()
        columns[name] = pa.array(np.concatenate([getattr(part, name) for part in texts]), dtype)
    if not texts:
        columns["label"] = pa.array(np.concatenate([part.labels for part in classified]), pa.int64())
        columns["scores"] = pa.array([row for part in classified for row in part.scores], pa.list_(pa.float32()))
    _write(path, pa.table(columns))


def read_predictions(path: Path, split: str) -> Predictions | TextScores:
    """What a run scored on a split; its columns say by which kind of model. A split that is not there has no rows."""
    with _reading(path, "these predictions", "move the run's folder away"):
        table = _read(path)
        table = table.filter(compute.equal(table["split"], split))
        if "nll" in table.column_names:
            counts = {name: table[name].to_numpy() for name in COUNTS}
            return TextScores(_ids(table), table["nll"].to_numpy(), **counts)
        scores = table["scores"].combine_chunks().flatten().to_numpy()
        rows = scores.reshape(len(table), -1) if len(table) else np.zeros((0, 0), np.float32)
        return Predictions(_ids(table), table["label"].to_numpy(), rows)


def write_examples(path: Path, about: AboutExamples, splits: Mapping[str, Examples]) -> None:
    """Keep examples and what is known of them, in a file whose pages have checksums."""
    columns: dict[str, list[Any]] = {name: [] for name in KEPT}
    for split, part in splits.items():
        columns["id"] += part.ids
        columns["split"] += [split] * len(part.ids)
        columns["text"] += [texts[0] for texts in part.texts]
        columns["pair"] += [texts[1] if len(texts) > 1 else None for texts in part.texts]
        columns["label"] += part.labels.tolist()
        columns["kind"] += part.kinds
        columns["tokens"] += part.tokens.tolist()
    types = [(name, getattr(pa, dtype)()) for name, dtype in KEPT.items()]
    schema = pa.schema(types, {ABOUT: json.dumps(asdict(about)).encode()})
    _write(path, pa.table(columns, schema), compression="zstd", write_page_checksum=True)


def about_examples(path: Path) -> AboutExamples | None:
    """What the file says of itself; None where there is none, or it is not what was written."""
    with suppress(LedgerError), _reading(path):
        about = json.loads(_read_kept(path).schema.metadata[ABOUT])
        return AboutExamples(**{one.name: about[one.name] for one in fields(AboutExamples)})
    return None


def read_examples(path: Path, split: str) -> Examples:
    """The examples of a split."""
    with _reading(path, "the examples", "run the study again to rewrite them"):
        table = _read_kept(path)
        rows = table.filter(compute.equal(table["split"], split)).to_pylist()
    return Examples(
        ids=tuple(row["id"] for row in rows),
        texts=tuple((row["text"],) if row["pair"] is None else (row["text"], row["pair"]) for row in rows),
        labels=np.array([row["label"] for row in rows], np.int64),
        kinds=tuple(row["kind"] for row in rows),
        tokens=np.array([row["tokens"] for row in rows], np.int32),
    )


def _read_kept(path: Path) -> Any:
    """The columns of kept examples; damage may have renamed one, which no checksum of a page shows."""
    return _read(path, page_checksum_verification=True).select(list(KEPT))


def _write(path: Path, table: Any, **options: Any) -> None:
    content = pa.BufferOutputStream()
    parquet.write_table(table, content, **options)
    write_atomically(path, content.getvalue().to_pybytes())


def _read(path: Path, **options: Any) -> Any:
    """A whole file: a filter while reading goes through threads that damaged files were seen to hang."""
    return parquet.ParquetFile(pa.BufferReader(path.read_bytes()), **options).read(use_threads=False)


@contextmanager
def _reading(path: Path, what: str = "it", advice: str = "write it again") -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException, LookupError, ValueError, TypeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise LedgerError(f"{path}: {what} cannot be read ({reason}); {advice}.") from None


_known_ids: dict[bytes, tuple[str, ...]] = {}
"""The newest tuple: runs of a study scored the same examples, whose names are made and held once."""


def _ids(table: Any) -> tuple[str, ...]:
    """The names of examples."""
    column = table["id"].combine_chunks()
    key = hashlib.sha256(b"".join(memoryview(part) for part in column.buffers() if part is not None)).digest()
    if key not in _known_ids:
        _known_ids.clear()
        _known_ids[key] = tuple(column.to_pylist())
    return _known_ids[key]
