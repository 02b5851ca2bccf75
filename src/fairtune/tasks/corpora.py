"""Text for language models: what is read for each split, and which documents are whose. Nothing is read before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fairtune.core.cache import key_of
from fairtune.core.errors import DataError, nearest, one_of
from fairtune.settings.file_task import FileTask
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.tasks.definitions import TEXTS, PackageData, TextDefinition
from fairtune.tasks.reading.shards import file_identity
from fairtune.tasks.stores import MIRROR, mirror_folder, mirrored
from fairtune.tasks.task import SPLITS
from fairtune.tasks.text_hashes import unit_hash
from fairtune.tasks.text_streams import Read, file_texts, hub_texts, package_data_file, package_texts

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
    return [text.name for text in TEXTS]


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
        parts[split] = Part(key_of([file_identity(file), column]), partial(file_texts, file, column), divided)
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
class _Source:
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


def _source(text: TextDefinition) -> _Source:
    """The mirror if it has the text, else the hub."""
    folder = mirror_folder()
    if folder is None or isinstance(text.data, PackageData):
        return _Source(text, None, f"{MIRROR} is not set")
    if not folder.is_dir():
        raise DataError(f"{MIRROR}: {folder} is not a folder; name one that is, or unset it to use the hub.")
    if (folder / text.data.folder).is_dir():
        return _Source(text, folder, "")
    return _Source(text, None, f"{MIRROR} is {folder}, which has no folder {text.data.folder}")
