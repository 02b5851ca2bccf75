"""Suites made by hand: several small studies in one runs folder, and the studies as a suite file would have them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # where made_text_ledger expects its neighbours

from tests.report.made_ledger import STUDY, ArmSpec, MadeLedger, make_study
from tests.report.made_pairs import change_plan

from fairtune.analysis.suite_cells import PlannedStudy
from fairtune.core.files import read_json, write_sealed

FOCAL = [{"focal": {"gamma": 2.0}}]
RIGHT = (336, 338, 334, 337)
"""Right answers of the baseline by seed, of 400."""


def gaining(*gains: int, methods: Sequence[Any] = FOCAL, **options: Any) -> ArmSpec:
    """An arm that has so many more right answers than the baseline in each seed."""
    return ArmSpec([right + gain for right, gain in zip(RIGHT, gains, strict=False)], methods=list(methods), **options)


def baseline() -> ArmSpec:
    return ArmSpec(list(RIGHT))


def add_study(
    runs: Path, study: str, task: str, arms: dict[str, ArmSpec], model: str = "minilm", **options: Any
) -> None:
    """A study on disk, of a name and a task of its own."""
    made = make_study(runs.parent / f"{study}-alone", arms, **options)
    move(made, runs, study, task, model)


def move(made: MadeLedger, runs: Path, study: str, task: str, model: str = "minilm", **changes: Any) -> None:
    change_plan(made, study=study, task={"name": task}, model={"name": model}, **changes)
    runs.mkdir(parents=True, exist_ok=True)
    shutil.move(made.runs / STUDY, runs / study)
    shutil.rmtree(made.runs)


def change_study(runs: Path, study: str, **changes: Any) -> None:
    """Another plan of a study in force."""
    for file in (runs / study / "study.json", *(runs / study / "plans").glob("*.json")):
        plan = read_json(file)
        assert plan is not None
        write_sealed(file, {**plan, **changes})


def change_task(runs: Path, study: str, task: str) -> None:
    """A copy of a study as one of another task."""
    plan = read_json(runs / study / "study.json")
    assert plan is not None
    change_study(runs, study, task={**plan["task"], "name": task})


def planned(
    study: str,
    task: str,
    arms: Mapping[str, bool] | Sequence[str] = ("focal",),
    model: str = "minilm",
    metric: str = "accuracy",
    group: str = "encoder",
    **others: Any,
) -> PlannedStudy:
    """A study as a suite has it; `baseline` is always one of its arms."""
    known = dict(arms) if isinstance(arms, Mapping) else dict.fromkeys(arms, False)
    return PlannedStudy(study, task, model, metric, group, {"baseline": False, **known}, "baseline", 0.95, 4, **others)


def make_suite(runs: Path, gains: Mapping[str, Sequence[int]], margin: Any = None) -> list[PlannedStudy]:
    """A study for each task, with one arm, `focal`, that gains so many right answers of 400 by seed."""
    for task, own in gains.items():
        add_study(runs, f"{task}-study", task, {"baseline": baseline(), "focal": gaining(*own)}, margin=margin)
    return [planned(f"{task}-study", task) for task in gains]
