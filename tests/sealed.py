"""Ledgers that tests make or change by hand, closed as a study would close them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtune.core.files import read_json, write_sealed
from fairtune.ledger.folders import RunFolder, run_folders
from fairtune.ledger.seals import close_run


def close_again(folder: RunFolder, **result: Any) -> None:
    """Close a run with what its files hold now, its result changed as given."""
    plan, found = read_json(folder.plan), read_json(folder.result)
    assert plan is not None
    assert found is not None
    write_sealed(folder.plan, plan)
    close_run(folder, plan["key"], {**found, **result})


def close_all(study: Path) -> None:
    """Seal whatever a test wrote into a study's folder."""
    for name in ("study.json", "data.json"):
        if found := read_json(study / name):
            write_sealed(study / name, found)
    for folder in run_folders(study):
        if environment := read_json(folder.environment):
            write_sealed(folder.environment, environment)
        result = read_json(folder.result) or {}
        if result.get("status") == "finished":
            close_again(folder)
        elif result:
            write_sealed(folder.result, {**result, "key": (read_json(folder.plan) or {})["key"]})
