"""The suites of a runs folder: of which studies each was made, when, and how many of their results were known then.

A suite is nothing but a list of studies, and a list that is written after the results can choose the answer. So the list is
recorded before the first run of it, and again each time it is another one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError
from fairtune.ledger.folders import read_record, runs_with_result, write_record
from fairtune.ledger.studies import HISTORY, TIME

FOLDER = "suites"
"""Next to the studies; what is in it has no `study.json`, so that nothing takes it for one."""
FIELDS = ("study", "task", "model", "metric")
"""What an entry says of each study."""


def suite_folder(runs: Path, suite: str) -> Path:
    return runs / FOLDER / suite


def count_results(runs: Path, study: str) -> int:
    """Runs of a study that have a result; trials are none."""
    return len(runs_with_result(runs / study))


def record_suite(runs: Path, suite: str, studies: Sequence[Mapping[str, str]]) -> None:
    """Put it on record that the suite is made of these studies, unless the last record says so.

    Args:
        studies: of each its name, task, model and metric.

    Raises:
        LedgerError: the record cannot be written, or the one that is there is damaged.
    """
    stated = [{field: one[field] for field in FIELDS} for one in studies]
    history = read_suite_history(runs, suite)
    if history and history[-1]["studies"] == stated:
        return
    names = dict.fromkeys(one["study"] for entry in (*history, {"studies": stated}) for one in entry["studies"])
    known = {name: count_results(runs, name) for name in names}
    entry = {"recorded": time.strftime(TIME, time.gmtime()), "studies": stated, "known": known}
    write_record(suite_folder(runs, suite) / HISTORY, {"history": [*history, entry]})


def read_suite_history(runs: Path, suite: str) -> list[dict[str, Any]]:
    """What was recorded of a suite, the oldest first; empty where nothing was.

    Raises:
        LedgerError: the record is not what was written.
    """
    file = suite_folder(runs, suite) / HISTORY
    if not file.exists():
        return []
    found: list[dict[str, Any]] = read_record(file, "bring it back, or delete it to begin a new record")["history"]
    return found


def suite_names(runs: Path) -> list[str]:
    """The suites of a runs folder that have a record."""
    return sorted(file.parent.name for file in (runs / FOLDER).glob(f"*/{HISTORY}"))


def suite_problems(runs: Path) -> list[str]:
    """Records of suites that are not what was written, each in a sentence."""
    found = []
    for name in suite_names(runs):
        try:
            read_suite_history(runs, name)
        except LedgerError as error:
            found.append(str(error))
    return found
