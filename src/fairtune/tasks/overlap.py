"""Validation and test that share texts: what selects the checkpoint would then also be what is reported."""

from __future__ import annotations

from dataclasses import dataclass

from fairtune.tasks.corpora import Corpus
from fairtune.tasks.duplicates import shared
from fairtune.tasks.task import Task
from fairtune.tasks.text_hashes import Hashes, exact_and_normal

MOST_DOCUMENTS = 50_000
"""Documents of a text for language models that are looked at, of each split."""


@dataclass(frozen=True)
class SharedTexts:
    """How much of what is reported is also selected by, up to case, punctuation and spacing.

    Args:
        found: test texts that are among those of validation.
        tested: all test texts that were looked at.
        every_validation: whether nothing but those is in the validation split.
    """

    found: int
    tested: int
    every_validation: bool = False

    @property
    def share(self) -> float:
        return self.found / self.tested if self.tested else 0.0


NONE_SHARED = SharedTexts(0, 0)


def find_shared_texts(task: Task) -> SharedTexts:
    """The test examples of a task that are in its validation split too."""
    return _shared(task.splits["test"].normal, task.splits["validation"].normal)


def find_shared_documents(corpus: Corpus) -> SharedTexts:
    """The test documents that are validation documents too; none where one source is divided, since equal texts stay together."""
    if any(corpus.parts[split].shares for split in ("validation", "test")):
        return NONE_SHARED
    return _shared(_documents(corpus, "test"), _documents(corpus, "validation"))


def _documents(corpus: Corpus, split: str) -> Hashes:
    texts: list[str] = []
    for batch in corpus.documents(split):
        texts += batch
        if len(texts) >= MOST_DOCUMENTS:
            break
    return exact_and_normal([texts[:MOST_DOCUMENTS]])[1]


def _shared(test: Hashes, validation: Hashes) -> SharedTexts:
    return SharedTexts(int(shared(test, validation).sum()), len(test), bool(shared(validation, test).all()))
