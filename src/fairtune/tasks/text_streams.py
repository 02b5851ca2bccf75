"""Where text for language models is read: files, an installed package, the hub. A chunk at a time, so that memory stays small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError, one_of
from fairtune.tasks.definitions import DataSet, PackageData
from fairtune.tasks.reading.formats import check_columns
from fairtune.tasks.reading.rows import checked_texts
from fairtune.tasks.reading.shards import package_file, shard_chunks
from fairtune.tasks.stores import mirror_file, no_way

Read = Callable[[], Iterator[list[str]]]
"""Reads texts from the beginning, a chunk at a time."""
HUB_ROWS = 500
"""Texts that are taken from the hub at a time."""


def file_texts(path: Path, column: str) -> Iterator[list[str]]:
    """A column of a file or of a folder of shards."""
    for chunk in shard_chunks(path, [column]):
        yield _checked(path, column, chunk.values[column], chunk.numbers)


def package_texts(data: PackageData, column: str) -> Iterator[list[str]]:
    """The rows of a package's file that belong to the data."""
    only, value = data.only
    file = package_data_file(data)
    for chunk in shard_chunks(file, [column, only]):
        texts = _checked(file, column, chunk.values[column], chunk.numbers)
        yield [text for text, found in zip(texts, chunk.values[only], strict=True) if found == value]


def package_data_file(data: PackageData) -> Path:
    return package_file(data.package, data.inside, data.package.replace("_", "-"))


def hub_texts(data: DataSet, split: str, column: str, no_mirror: str) -> Iterator[list[str]]:
    """A split of a data set on the hub at the commit that it pins, fetched only as far as it is read.

    Args:
        no_mirror: why the mirror does not give it, for messages.
    """
    where, number = f"hub data set {data}, split {split}", 1
    batches = _hub_batches(data, split, where, no_mirror)
    try:
        for batch in batches:
            check_columns(where, list(batch), [column])
            texts = batch[column]
            yield _checked(where, column, texts, range(number, number + len(texts)))
            number += len(texts)
    finally:
        batches.close()


def _hub_batches(data: DataSet, split: str, where: str, no_mirror: str) -> Any:
    import datasets

    datasets.disable_progress_bars()
    try:
        builder = datasets.load_dataset_builder(data.repository, data.config, revision=data.revision)
        if (commit := Path(builder.cache_dir).name) != data.revision:
            # without network `datasets` takes whatever commit it fetched last
            raise _no_way(data, no_mirror, f"in its place is {commit}")
        splits = builder.as_streaming_dataset()
        if split not in splits:
            raise DataError(f"{where}: no such split; splits: {one_of(splits)}.")
        yield from splits[split].iter(batch_size=HUB_ROWS)
    except DataError:
        raise
    except Exception as error:  # network, offline mode, no such data set or commit: each its own kind
        raise _no_way(data, no_mirror, error) from None


def _no_way(data: DataSet, no_mirror: str, error: Exception | str) -> DataError:
    files = [f"{mirror_file(data, 'train')} and its other splits"]
    return no_way(data.folder, no_mirror, data, error, files, "`kind: language_model` and `train`")


def _checked(where: Path | str, column: str, values: Sequence[Any], numbers: Sequence[int]) -> list[str]:
    """Texts that can be tokenised; nothing at all is an empty text."""
    return [text or "" for text in checked_texts(where, column, values, numbers)]
