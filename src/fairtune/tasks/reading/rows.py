"""Rows as read from a file, a mirror or the hub, before they are examples: texts and labels, kept by Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.errors import DataError
from fairtune.core.stages import Advance, stage
from fairtune.tasks.reading.labels import label_values, some_rows
from fairtune.tasks.reading.reader import RowBatch, shard_batches

Indices = npt.NDArray[np.int64]
NUMBER = "#"
"""The column with each row's number in its file."""
KIND = "#kind"
"""The column that says of what kind each row is, where it is asked for."""
BATCH = 10_000


@dataclass(frozen=True)
class Rows:
    """Some columns of a file or of a hub's data set; every value is a text or null.

    Args:
        where: the file or the data set, for messages.
        table: the columns by name, and the row numbers.
        picked: the rows of the table that count, in their order; None for all.
    """

    where: Path | str
    table: Any
    picked: Indices | None = None

    def __len__(self) -> int:
        return int(self.table.num_rows) if self.picked is None else len(self.picked)

    @property
    def numbers(self) -> Indices:
        found = self.table.column(NUMBER).to_numpy()
        return found if self.picked is None else found[self.picked]  # type: ignore[no-any-return]

    def take(self, keep: Indices) -> Rows:
        """Some of the rows; `keep` is sorted."""
        return replace(self, picked=keep if self.picked is None else self.picked[keep])

    def arrow(self, columns: Sequence[str]) -> Iterator[Any]:
        """Some columns, as Arrow's record batches."""
        first = 0
        for batch in self.table.select(list(columns)).to_batches(max_chunksize=BATCH):
            if self.picked is None:
                yield batch
            else:
                low, high = np.searchsorted(self.picked, [first, first + len(batch)])
                yield batch.take(self.picked[low:high] - first)
            first += len(batch)

    def where_equal(self, column: str, value: str) -> Rows:
        import pyarrow.compute as pc

        found = [pc.equal(batch.column(0), value).to_numpy(zero_copy_only=False) for batch in self.arrow([column])]
        return self.take(np.flatnonzero(np.concatenate(found)))

    def missing(self, column: str, words: Collection[str] = ()) -> npt.NDArray[np.bool_]:
        """Which rows have nothing in a column, or one of these words."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = [np.zeros(0, dtype=np.bool_)]
        for batch in self.arrow([column]):
            blank = pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(batch.column(0))), 0)
            if words:
                blank = pc.or_(
                    blank, pc.is_in(batch.column(0), value_set=pa.array(sorted(words), batch.column(0).type))
                )
            found.append(pc.fill_null(blank, True).to_numpy(zero_copy_only=False))
        return np.concatenate(found)

    def counts(self, column: str) -> Counter[str]:
        """How often each value stands in a column."""
        counts: Counter[str] = Counter()
        for batch in self.arrow([column]):
            for found in batch.column(0).drop_null().value_counts().to_pylist():
                counts[found["values"]] += found["counts"]
        return counts

    def refuse_missing(self, column: str, what: str) -> None:
        """Refuse rows that have nothing in a column; those of the whole file are counted, whichever of them are here."""
        if self.missing(column).any():
            whole = replace(self, picked=None)
            missing = whole.numbers[whole.missing(column)].tolist()
            raise DataError(
                f"{self.where}: column '{column}' has no {what} in {len(missing)} of {len(whole)} rows "
                f"(rows {some_rows(missing)}); fill or remove them."
            )


def read_rows(
    path: Path,
    texts: Sequence[str],
    label: str,
    aside: Path,
    kind: str | None = None,
    called: str | None = None,
    encoding: str | None = None,
) -> Rows:
    """The named columns of a file or a folder of shards, written to a file as they come and mapped from there.

    Args:
        texts: columns whose values must be texts.
        label: the column with labels of any type.
        aside: the file to write.
        kind: the column that says of what kind a row is, or nothing.
        called: what messages call the file, where its name would tell a user nothing.
        encoding: of the file; None is UTF-8, or what its mark says.
    """
    import pyarrow as pa

    columns = list(dict.fromkeys([*texts, label, *([kind] if kind else [])]))

    def batches(advance: Advance) -> Iterator[Any]:
        for some in shard_batches(path, columns, encoding=encoding, called=called):
            advance(len(some))
            found = {name: _texts(some, name) for name in texts}
            found[label] = _labels(some, label)
            if kind:
                found[KIND] = _labels(some, kind)
            yield pa.record_batch({**found, NUMBER: pa.array(np.array(some.numbers, dtype=np.int64))})

    with stage(f"reading rows of {called or path.name}") as advance:
        write_batches(aside, batches(advance))
    if not aside.stat().st_size:
        raise DataError(f"{called or path}: the file has no rows.")
    return Rows(called or path, open_table(aside))


def _texts(some: RowBatch, column: str) -> Any:
    import pyarrow as pa

    found = some.strings(column)
    return pa.array(some.optional_texts(column), pa.large_string()) if found is None else found


def _labels(some: RowBatch, column: str) -> Any:
    import pyarrow as pa

    def texts(numbers: Sequence[int], values: Sequence[Any]) -> Any:
        found = label_values(some.where, column, numbers, values)
        return pa.array([None if label is None else str(label) for label in found], pa.large_string())

    if (strings := some.strings(column)) is None:
        return texts(some.numbers, some.values(column))
    encoded = strings.dictionary_encode("encode")
    first = [some.numbers[place] for place in np.unique(encoded.indices.to_numpy(), return_index=True)[1]]
    return texts(first, encoded.dictionary.to_pylist()).take(encoded.indices)


def write_batches(file: Path, batches: Iterable[Any]) -> None:
    """Record batches into an Arrow file, as they come."""
    import pyarrow as pa

    writer = None
    with pa.OSFile(str(file), "wb") as sink:
        for batch in batches:
            writer = writer or pa.ipc.new_file(sink, batch.schema)
            writer.write_batch(batch)
        if writer is not None:
            writer.close()


def open_table(file: Path) -> Any:
    """An Arrow file, mapped into memory."""
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(str(file))).read_all()
