"""What is reported and is also trained on or selected by."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice

from fairtune.core.errors import DataError
from fairtune.core.numbers import as_percent
from fairtune.tasks.corpora import Corpus
from fairtune.tasks.duplicates import shared
from fairtune.tasks.task import Task
from fairtune.tasks.text_hashes import Hashes, exact_and_normal

MOST_DOCUMENTS = 50_000
"""Documents of a text for language models that are looked at, of each split."""
MOST = 0.1
"""The share of the reported texts that may be in the training split."""


@dataclass(frozen=True)
class SharedTexts:
    """How much of what is reported is in another split too, up to case, punctuation and spacing.

    Args:
        found: test texts that are among those of the other split.
        tested: all test texts that were looked at.
        every: whether nothing but those is in the other split.
    """

    found: int
    tested: int
    every: bool = False

    @property
    def share(self) -> float:
        return self.found / self.tested if self.tested else 0.0


NONE_SHARED = SharedTexts(0, 0)


def shared_texts(task: Task, split: str = "validation") -> SharedTexts:
    """The test examples of a task that are in another of its splits too."""
    return _shared(task.splits["test"].normal, task.splits[split].normal)


def shared_documents(corpus: Corpus) -> SharedTexts:
    """The test documents that are validation documents too; none where one source is divided, since equal texts stay together."""
    if any(corpus.parts[split].shares for split in ("validation", "test")):
        return NONE_SHARED
    return _shared(_documents(corpus, "test"), _documents(corpus, "validation"))


def _documents(corpus: Corpus, split: str) -> Hashes:
    import pyarrow as pa

    texts = islice(chain.from_iterable(corpus.documents(split)), MOST_DOCUMENTS)
    return exact_and_normal([pa.array(texts, pa.large_string())])[1]


def _shared(test: Hashes, others: Hashes) -> SharedTexts:
    return SharedTexts(int(shared(test, others).sum()), len(test), bool(shared(others, test).all()))


def check_contamination(task: Task, train_on: str | None, allowed: bool) -> tuple[str, ...]:
    """Refuse a task whose training split holds what is reported, when the plan is made.

    Args:
        train_on: the task whose training split is used, where it is another one.
        allowed: the study's `allow_contamination`.

    Returns:
        Warnings to record with the plan: what was allowed although it is contaminated.

    Raises:
        DataError: more than a tenth of the reported texts are in the training split.
    """
    test = shared_texts(task, "train")
    if test.found <= MOST * test.tested:
        return ()
    trained = f", trained on '{train_on}'" if train_on else ""
    finding = (
        f"task '{task.name}'{trained}: {test.found:,} of the {test.tested:,} test texts ({as_percent(test.share)}) are in the "
        f"training split, up to case, punctuation and spacing"
    )
    if allowed:
        return (f"{finding}. The study allows it: its scores tell what was remembered, not what was learned.",)
    raise DataError(
        f"{finding}. Its scores would tell what was remembered. Set `dedupe: true` to take those texts out of the training split, "
        "choose another task, or set `allow_contamination: true` to run it all the same."
    )
