"""Finding a run by its folder or its name, and whether there is a model of it to export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError
from fairtune.core.files import read_json, read_sealed
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.seals import DAMAGED, FINISHED, run_state
from fairtune.ledger.studies import find_folder


@dataclass(frozen=True)
class FinishedRun:
    """A finished run that kept its model.

    Args:
        plan: what its plan.json says.
    """

    folder: RunFolder
    plan: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.plan['study']}/{self.plan['arm']}/seed-{self.plan['seed']}"

    @property
    def model(self) -> Path:
        return self.folder.model

    def checkpoint_folder(self) -> str | None:
        """The folder that the study's plan recorded for a checkpoint that is neither embedded nor the hub's."""
        file = self.folder.path.parent.parent / "plans" / f"{self.plan['plan']}.json"
        model = (read_json(file) or {}).get("model")
        if not isinstance(model, dict) or model.get("hub_id") or model.get("name") == "minilm":
            return None
        return model.get("folder")


def find_run(run: str | Path, runs: Path) -> FinishedRun:
    """A finished run with its model.

    Args:
        run: its folder, or `study/arm/seed-n`.
        runs: the folder that keeps the runs.

    Raises:
        LedgerError: there is no such run, or nothing of it that could be exported.
    """
    folder = find_folder(run, runs)
    state = run_state(folder, thorough=True)
    if state.status == DAMAGED:
        raise LedgerError(
            f"{folder.path}: this run is not what it was when it was closed: {state.problem}. Nothing was exported; move the "
            "folder away and run the study again."
        )
    found = FinishedRun(folder, read_sealed(folder.plan))
    if state.status != FINISHED:
        why = f" ({reason})" if (reason := state.result.get("reason")) else ""
        raise LedgerError(
            f"run {found.name} has not finished: it is {state.status}{why}. End it with `fairtune run`, then export it."
        )
    if not folder.model.is_dir():
        raise LedgerError(
            f"run {found.name} kept no model (execution.save_model was false). To have one, move its folder away and run the "
            "study again with --set execution.save_model=true."
        )
    return found
