"""Pairs of studies made by hand, in two runs folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.report.made_ledger import STUDY, ArmSpec, MadeLedger, make_study

from fairtune.core.files import read_json, write_sealed

ARMS = {"baseline": ArmSpec([336, 338, 334]), "focal": ArmSpec([343, 340, 345], methods=[{"focal": {"gamma": 2.0}}])}
OTHERS = {"baseline": ArmSpec([320, 322], lr=1e-4), "fgm": ArmSpec([330, 331], lr=1e-4, methods=[{"fgm": {}}])}


def made_pair(tmp_path: Path) -> tuple[MadeLedger, MadeLedger]:
    """Two studies of the same task, which share `baseline` with other settings and seeds."""
    return make_study(tmp_path / "one", ARMS, margin="1.5%"), make_study(tmp_path / "two", OTHERS, margin="1.5%")


def change_plan(made: MadeLedger, **changes: Any) -> None:
    """Another plan in force, as a whole or in its task (`task={...}`)."""
    home = made.runs / STUDY
    for file in (home / "study.json", *(home / "plans").glob("*.json")):
        plan = read_json(file)
        assert plan is not None
        for name, value in changes.items():
            plan[name] = {**plan[name], **value} if isinstance(value, dict) else value
        write_sealed(file, plan)
