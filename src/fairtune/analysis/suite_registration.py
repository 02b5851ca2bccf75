"""When the list of a suite's studies was fixed, and what became of it since.

Nobody is kept from putting a suite together after its results, but its first lines say so with dates; and a task that was taken out
after its results were known leaves no verdict in an arm's favour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from fairtune.analysis.registration import IN, OUT, PlanChange, day
from fairtune.core.errors import LedgerError
from fairtune.core.numbers import plural
from fairtune.ledger.studies import SUITE_FIELDS, count_results, read_suite_history, suite_names


@dataclass(frozen=True)
class SuiteRegistration:
    """What is on record of a suite's list of studies.

    Args:
        recorded: when the first list was; None where there is no record of it.
        known: results of its studies that there were then.
        changes: of the list since, also one that is not on record yet.
        left_out: studies with results that were on the list once and are not on it now, each after its metric.
        beside: other suites on record that have, or had, some of the same studies; each may be another try.
        trouble: why the record cannot be read.
    """

    recorded: str | None = None
    known: int = 0
    changes: tuple[PlanChange, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    beside: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def fixed_before(self) -> bool:
        """Whether the list was fixed before the first result, and is the same still."""
        touched = any(change.known for change in self.changes)
        return self.recorded is not None and not (self.known or touched or self.left_out)

    @property
    def sentence(self) -> str:
        """That in a sentence, which stands at the top of every page."""
        if self.trouble:
            return f"It cannot be told when this list of studies was made: {self.trouble}"
        if self.recorded is None:
            return (
                "It is not on record when this list of studies was made, so it may have been chosen by results: a summary, not a "
                "test. `fairtune suite` without --report puts it on record before the first run."
            )
        if self.known:
            many = plural(self.known, "result was known", "results were known")
            return f"This list of studies was made on {day(self.recorded)}, when {many}: a summary of them, not a test."
        if not self.fixed_before:
            return f"This list of studies was changed after results were known; the first was made on {day(self.recorded)}."
        return f"This list of studies was fixed on {day(self.recorded)}, before any result of theirs was known."

    @property
    def remarks(self) -> list[str]:
        """What was changed since, and which other lists there are."""
        found = [str(change) for change in self.changes]
        if self.beside:
            others = ", ".join(self.beside)
            found.append(f"Other suites on record have some of the same studies: {others}")
        return found

    def left_out_of(self, metric: str) -> list[str]:
        return [study for own, study in self.left_out if own == metric]


def register_list(runs: Path, suite: str, studies: Sequence[Mapping[str, Any]]) -> SuiteRegistration:
    """What a runs folder says about the list of a suite's studies.

    Args:
        studies: those that the suite has now, each with its name, task, model and metric.
    """
    try:
        history = read_suite_history(runs, suite)
    except LedgerError as error:
        return SuiteRegistration(trouble=str(error))
    names = {str(one["study"]) for one in studies}
    beside = tuple(name for name in suite_names(runs) if name != suite and names & _ever(runs, name))
    if not history:
        return SuiteRegistration(beside=beside)
    now = [{field: one[field] for field in SUITE_FIELDS} for one in studies]
    everyone = {one["study"]: one["metric"] for entry in history for one in entry["studies"]}
    results = {name: count_results(runs, name) for name in everyone}
    steps: list[Mapping[str, Any]] = list(history)
    if history[-1]["studies"] != now:
        steps.append({"recorded": "", "studies": now, "known": results})
    return SuiteRegistration(
        recorded=str(history[0]["recorded"]),
        known=sum(history[0]["known"].values()),
        changes=tuple(change for before, after in pairwise(steps) for change in _changes(before, after)),
        beside=beside,
        left_out=tuple((metric, name) for name, metric in everyone.items() if name not in names and results[name]),
    )


def _ever(runs: Path, suite: str) -> set[str]:
    """The studies that a suite has or had; none where its record cannot be read."""
    try:
        return {one["study"] for entry in read_suite_history(runs, suite) for one in entry["studies"]}
    except LedgerError:
        return set()


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[PlanChange]:
    when, known = str(after["recorded"]), sum(after["known"].values())
    old, new = ({one["study"]: one for one in entry["studies"]} for entry in (before, after))
    for name in dict.fromkeys([*old, *new]):
        if name not in new:
            yield PlanChange(when, name, *OUT, known)
        elif name not in old:
            yield PlanChange(when, name, *IN, known)
        else:
            for field in SUITE_FIELDS:
                if old[name][field] != new[name][field]:
                    yield PlanChange(when, f"the {field} of {name}", old[name][field], new[name][field], known)
