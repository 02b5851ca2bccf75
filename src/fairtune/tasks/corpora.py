"""Text for language models: what is read for each split, and which documents are whose. Nothing is read before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairtune.core.cache import key_of
from fairtune.core.errors import DataError, nearest, one_of
from fairtune.settings.file_task import FileTask
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.tasks.definitions import TEXTS, Definition
from fairtune.tasks.reading.files import file_identity
from fairtune.tasks.registry import registered_tasks
from fairtune.tasks.stores import file_texts, find_store
from fairtune.tasks.task import SPLITS
from fairtune.tasks.text_hashes import unit_hash

Read = Callable[[], Iterator[list[str]]]
"""Reads texts from the beginning, some at a time."""
METRIC = "perplexity"
"""What selects checkpoints and decides verdicts where the task is text."""
VERSION = 1
"""Raised whenever the same source would give other documents."""
HEAD = 50_000
"""Rows, from the first, among which held-out texts are looked for: to validate, no one reads forty gigabytes."""


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
    if published := next((task for task in TEXTS if task.name == spec), None):
        return _published(published)
    if spec in corpus_names():
        return _from_files(registered_tasks()[spec].spec)
    names = corpus_names()
    raise DataError(f"task '{spec}': not among the texts for language models: {one_of(names)}.{nearest(spec, names)}")


def _from_files(spec: FileTask) -> Corpus:
    files, shares = spec.files, tuple(spec.shares.items())
    column, parts = spec.text[0], {}
    for split in SPLITS:
        file = files.get(split, files["train"])
        divided = shares if file is files["train"] else ()
        identity = key_of([file_identity(file), column, *([spec.encoding] if spec.encoding else [])])
        parts[split] = Part(identity, partial(file_texts, file, column, spec.encoding), divided)
    names = one_of(file.name for file in files.values())
    return Corpus(spec.name, "; ".join([f"files {names}", *_held_out(shares)]), parts)


def _published(task: Definition) -> Corpus:
    store, (column,) = find_store(task), task.text
    where = {role: split for role, (_, split) in task.places().items()}

    def part(split: str, shares: tuple[tuple[str, float], ...] = (), head: int | None = None) -> Part:
        return Part(
            store.identity(task.data, split, column), partial(store.texts, task.data, split, column), shares, head
        )

    if task.test is None:
        halves = part(where["validation"], (("validation", 0.5), ("test", 0.5)))
        parts = {"train": part("train"), "validation": halves, "test": halves}
        return Corpus(task.name, f"{store}; halves of the {task.validation} split", parts)
    shares = tuple(task.shares.items())
    parts = {split: part(where[split]) if split in where else part("train", shares, HEAD) for split in SPLITS}
    parts["train"] = part("train", shares)
    return Corpus(task.name, "; ".join([str(store), *_held_out(shares)]), parts)


def _held_out(shares: tuple[tuple[str, float], ...]) -> list[str]:
    return [f"{split} is {share:.3g} of the training text" for split, share in shares]
