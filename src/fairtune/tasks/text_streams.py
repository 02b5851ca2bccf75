"""Where text for language models is read: files, an installed package, the hub. A chunk at a time, so that memory stays small."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fairtune.errors import DataError, one_of
from fairtune.tasks.definitions import DataSet, PackageData
from fairtune.tasks.formats import check_columns
from fairtune.tasks.sources import package_file, shard_chunks
from fairtune.tasks.stores import MIRROR, forbidding

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
            raise DataError(_no_way(data, no_mirror, f"in its place is {commit}"))
        splits = builder.as_streaming_dataset()
        if split not in splits:
            raise DataError(f"{where}: no such split; splits: {one_of(splits)}.")
        yield from splits[split].iter(batch_size=HUB_ROWS)
    except DataError:
        raise
    except Exception as error:  # network, offline mode, no such data set or commit: each its own kind
        raise DataError(_no_way(data, no_mirror, str(error).strip() or type(error).__name__)) from None


def _no_way(data: DataSet, no_mirror: str, error: str) -> str:
    reason = error.splitlines()[0].rstrip(".")
    offline = forbidding()
    network = f"unset {one_of(offline)}, which forbids the network" if offline else "connect to the network"
    return (
        f"task '{data.folder}': no data. {no_mirror}, and the hub did not give {data} ({reason}). Either set {MIRROR} to a "
        f"folder with {data.folder}/train.jsonl.gz and its other splits; or {network}, so that the hub can be read; or give "
        "your own files: `task:` with `kind: language_model` and `train`."
    )


def _checked(where: Path | str, column: str, values: Sequence[Any], numbers: Sequence[int]) -> list[str]:
    """Texts that can be tokenised; nothing at all is an empty text."""
    texts = []
    for number, value in zip(numbers, values, strict=True):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            texts.append("")
            continue
        if not isinstance(value, str):
            raise DataError(f"{where}: row {number}: column '{column}' holds {str(value)[:60]}, not a text.")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{where}: row {number}: column '{column}' holds half a character ({error.object[error.start]!r}); a text "
                "was cut in the middle of an emoji or the like. Mend or remove it."
            ) from None
        texts.append(value)
    return texts
