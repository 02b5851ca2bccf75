"""The plans that a study's folder keeps, all sealed: the newest as `study.json`, and each one with its time in `plans/`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError
from fairtune.core.files import read_sealed, write_sealed

NEEDED = {"task": dict, "arms": dict, "compare": dict, "runs": list}
"""What no reader can do without."""


def write_study(home: Path, plan: dict[str, Any]) -> None:
    """Keep a plan.

    Raises:
        LedgerError: the folder cannot be written.
    """
    try:
        (home / "plans").mkdir(parents=True, exist_ok=True)
        first = home / "plans" / f"{plan['plan']}.json"
        if not first.exists():
            write_sealed(first, {"recorded": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **plan})
        write_sealed(home / "study.json", plan)
    except OSError as error:
        raise LedgerError(
            f"{home}: the plan cannot be written ({error.strerror}); mend that or use another --runs."
        ) from None


def read_study(home: Path) -> dict[str, Any]:
    """The newest plan.

    Raises:
        LedgerError: it is not what was written, or of a version whose plans cannot be read.
    """
    again = "run the study again to write it anew"
    try:
        plan = read_sealed(home / "study.json")
    except OSError as error:
        raise LedgerError(f"{home / 'study.json'} cannot be read ({error.strerror}); {again}.") from None
    except ValueError as error:
        raise LedgerError(f"{home / 'study.json'} {error}; {again}.") from None
    wrong = [name for name, kind in NEEDED.items() if not isinstance(plan.get(name), kind)]
    if wrong:
        raise LedgerError(f"{home / 'study.json'} is no plan of this version: it lacks {wrong[0]}; {again}.")
    return plan
