"""Text for language models: what is read for each split, and which documents are whose. Nothing is read before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fairtune.core.cache import key_of
from fairtune.core.errors import DataError, nearest, one_of
from fairtune.settings.file_task import FileTask
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.tasks.definitions import TEXTS, DataSet, PackageData, TextDefinition
from fairtune.tasks.reading.columns import check_columns
from fairtune.tasks.reading.files import file_identity
from fairtune.tasks.reading.reader import checked_texts, shard_batches
from fairtune.tasks.registry import registered_tasks
from fairtune.tasks.stores import (
    MIRROR,
    mirror_file,
    mirror_folder,
    mirrored,
    package_file,
    unavailable_error,
)
from fairtune.tasks.task import SPLITS
from fairtune.tasks.text_hashes import unit_hash

Read = Callable[[], Iterator[list[str]]]
"""Reads texts from the beginning, some at a time."""
HUB_ROWS = 500
"""Texts that are taken from the hub at a time."""
METRIC = "perplexity"
"""What selects checkpoints and decides verdicts where the task is text."""
VERSION = 1
"""Raised whenever the same source would give other documents."""
HELD_OUT = 0.02
"""Share of the texts that is held out for each of validation and test, where a data set has a training split only ..."""
HEAD = 50_000
"""... and the rows, from the first, among which they are looked for: to validate, nobody reads forty gigabytes."""


@dataclass(frozen=True)
class Part:
    """Where the documents of a split are read.

    Args:
        identity: what is there: a hash of the content, or a pinned commit.
        shares: how the texts there are divided among splits, by a hash of each; what is left over trains.
        head: how many rows are read; None reads all.
    """

    identity: str
    read: Read
    shares: tuple[tuple[str, float], ...] = ()
    head: int | None = None


@dataclass(frozen=True)
class Corpus:
    """Text in three splits: `train` trains, `validation` selects, `test` is reported.

    Args:
        source: where it comes from and how it was divided, for reports.
    """

    name: str
    source: str
    parts: Mapping[str, Part]

    def identity(self, split: str) -> str:
        """What is made of this split is found again by it."""
        part = self.parts[split]
        return key_of([VERSION, part.identity, split if part.shares else None, part.shares, part.head])

    def documents(self, split: str) -> Iterator[list[str]]:
        """The documents of a split in their order, some at a time: without white space at their ends, and none that is blank.

        Raises:
            DataError: the text is not there or cannot be read; what to do.
        """
        part, left = self.parts[split], self.parts[split].head
        for texts in part.read():
            if left is not None:
                texts = texts[:left]
                left -= len(texts)
            found = [text for text in map(str.rstrip, texts) if text and _is_of(text, split, part)]
            if found:
                yield found
            if left == 0:
                return


def _is_of(text: str, split: str, part: Part) -> bool:
    """Whether a text falls to this split; equal texts always fall to the same."""
    if not part.shares:
        return True
    number = unit_hash(text.strip().lower())
    for name, share in part.shares:
        if number < share:
            return split == name
        number -= share
    return split == "train"


def corpus_names() -> list[str]:
    """The texts for language models, those that were registered last."""
    return [*(text.name for text in TEXTS), *(task.name for task in registered_tasks().values() if task.is_text)]


def is_text(spec: str | FileTask) -> bool:
    """Whether a study's task is text for language models."""
    return spec in corpus_names() if isinstance(spec, str) else spec.kind == LANGUAGE_MODEL


def load_corpus(spec: str | FileTask | Mapping[str, Any]) -> Corpus:
    """Text for language models by its name, or from files.

    Raises:
        DataError: there is no such text, or its files are not there.
    """
    if not isinstance(spec, str):
        return _from_files(spec if isinstance(spec, FileTask) else FileTask.model_validate(spec))
    for text in TEXTS:
        if text.name == spec:
            return _published(text)
    if spec in corpus_names():
        return _from_files(registered_tasks()[spec].spec)
    raise DataError(
        f"task '{spec}': not among the texts for language models; known: {one_of(corpus_names())}."
        f"{nearest(spec, corpus_names())} For your own give a mapping with `kind: {LANGUAGE_MODEL}` and `train`."
    )


def _from_files(spec: FileTask) -> Corpus:
    if spec.kind != LANGUAGE_MODEL:
        raise DataError(
            f"task '{spec.name}': its kind is {spec.kind}; text for language models has `kind: {LANGUAGE_MODEL}`."
        )
    files = {split: Path(file) for split in SPLITS if (file := getattr(spec, split)) is not None}
    shares = tuple((split, getattr(spec.holdout, split)) for split in SPLITS if split not in files)
    if sum(share for _, share in shares) >= 1:
        raise DataError("task: holdout: the validation and test shares leave nothing to train on.")
    column, parts = spec.text[0], {}
    for split in SPLITS:
        file = files.get(split, files["train"])
        divided = shares if file is files["train"] else ()
        identity = key_of([file_identity(file), column, *([spec.encoding] if spec.encoding else [])])
        parts[split] = Part(identity, partial(file_texts, file, column, spec.encoding), divided)
    names = one_of(file.name for file in files.values())
    return Corpus(spec.name, "; ".join([f"files {names}", *_held_out(shares)]), parts)


def _published(text: TextDefinition) -> Corpus:
    source, roles = _source(text), {"train": "train", "validation": text.validation, "test": text.test}
    if text.validation and not text.test:
        halves = source.part(text.validation, (("validation", 0.5), ("test", 0.5)))
        parts = {"train": source.part("train"), "validation": halves, "test": halves}
        return Corpus(text.name, f"{source}; halves of the {text.validation} split", parts)
    shares = tuple((role, HELD_OUT) for role, split in roles.items() if split is None)
    parts = {role: source.part(split) if split else source.part("train", shares, HEAD) for role, split in roles.items()}
    parts["train"] = source.part("train", shares)
    return Corpus(text.name, "; ".join([str(source), *_held_out(shares)]), parts)


def _held_out(shares: tuple[tuple[str, float], ...]) -> list[str]:
    return [f"{split} is {share:.3g} of the training text" for split, share in shares]


@dataclass(frozen=True)
class _TextSource:
    """Where a published text is.

    Args:
        mirror: the mirror, if it has the text.
        why: why it is not.
    """

    text: TextDefinition
    mirror: Path | None
    why: str

    def part(self, split: str, shares: tuple[tuple[str, float], ...] = (), head: int | None = None) -> Part:
        data, column = self.text.data, self.text.text
        if isinstance(data, PackageData):
            identity = key_of([file_identity(package_data_file(data)), data.only, column])
            return Part(identity, partial(package_texts, data, column), shares, head)
        if self.mirror is None:
            identity = f"hub {data.repository} {data.config} {data.revision} {split} {column}"
            return Part(identity, partial(hub_texts, data, split, column, self.why), shares, head)
        file = mirrored(self.text.name, self.mirror, data, split)
        return Part(key_of([file_identity(file), column]), partial(file_texts, file, column), shares, head)

    def __str__(self) -> str:
        if isinstance(self.text.data, PackageData):
            return str(self.text.data)
        return "local mirror" if self.mirror else f"hub {self.text.data}"


def _source(text: TextDefinition) -> _TextSource:
    """The mirror if it has the text, else the hub."""
    folder = mirror_folder()
    if folder is None or isinstance(text.data, PackageData):
        return _TextSource(text, None, f"{MIRROR} is not set")
    if not folder.is_dir():
        raise DataError(f"{MIRROR}: {folder} is not a folder; name one that is, or unset it to use the hub.")
    if (folder / text.data.folder).is_dir():
        return _TextSource(text, folder, "")
    return _TextSource(text, None, f"{MIRROR} is {folder}, which has no folder {text.data.folder}")


def file_texts(path: Path, column: str, encoding: str | None = None) -> Iterator[list[str]]:
    """A column of a file or of a folder of shards; in plain text, one document per paragraph."""
    for some in shard_batches(path, [column], "paragraph", encoding):
        yield _checked(path, column, some.values(column), some.numbers)


def package_texts(data: PackageData, column: str) -> Iterator[list[str]]:
    """The rows of a package's file that belong to the data."""
    only, value = data.only
    file = package_data_file(data)
    for some in shard_batches(file, [column, only]):
        texts = _checked(file, column, some.values(column), some.numbers)
        yield [text for text, found in zip(texts, some.values(only), strict=True) if found == value]


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
            raise _unavailable_error(data, no_mirror, f"in its place is {commit}")
        splits = builder.as_streaming_dataset()
        if split not in splits:
            raise DataError(f"{where}: no such split; splits: {one_of(splits)}.")
        yield from splits[split].iter(batch_size=HUB_ROWS)
    except DataError:
        raise
    except Exception as error:  # network, offline mode, no such data set or commit: each its own type
        raise _unavailable_error(data, no_mirror, error) from None


def _unavailable_error(data: DataSet, no_mirror: str, error: Exception | str) -> DataError:
    files = [f"{mirror_file(data, 'train')} and its other splits"]
    return unavailable_error(data.folder, no_mirror, data, error, files, "`kind: language_model` and `train`")


def _checked(where: Path | str, column: str, values: Sequence[Any], numbers: Sequence[int]) -> list[str]:
    """Texts that can be tokenised; nothing at all is an empty text."""
    return [text or "" for text in checked_texts(where, column, values, numbers)]
