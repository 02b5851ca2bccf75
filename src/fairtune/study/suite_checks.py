"""What can be wrong with studies that are right by themselves, as parts of one suite."""

from __future__ import annotations

from collections.abc import Sequence

from fairtune.core.errors import one_of
from fairtune.models.presets import parse_preset, preset_name
from fairtune.settings.model import PresetModel
from fairtune.study.problems import Problem
from fairtune.study.schema import Study
from fairtune.tasks.definitions import ALIASES

Placed = tuple[str, str, Study]
"""A study with its key in the suite file and the line there."""


def cell_problems(cells: Sequence[Placed], label: str) -> list[Problem]:
    """Two studies of one name, a task twice with one model, other references, and arms that no two studies share.

    Args:
        label: what messages call the suite file.
    """
    names: dict[str, str] = {}
    files: dict[str, tuple[str, str]] = {}
    tasks: dict[tuple[str, str], str] = {}
    found: list[Problem] = []
    for key, where, study in cells:
        if study.study in names:
            message = (
                f"the study '{study.study}' is {names[study.study]} already; studies of one name would share their runs. "
                "Change one with {file: ..., set: {study: NAME}}"
            )
            found.append(Problem(where, key, message))
            continue
        names[study.study] = key
        own = "" if isinstance(study.task, str) else study.task.train
        other, first = files.setdefault(task_name(study), (own, key))
        if own != other:
            called = f"its task is called '{task_name(study)}' as that of {first}"
            message = f"{called}, but has other files; give each task its own `name`"
            found.append(Problem(where, key, message))
            continue
        pair = (task_name(study), model_name(study))
        if pair in tasks:
            message = f"{pair[0]} with {pair[1]} is {tasks[pair]} already; a task counts once with a model; leave out one of them"
            found.append(Problem(where, key, message))
        tasks.setdefault(pair, key)
    return found or _arm_problems(cells, label)


def _arm_problems(cells: Sequence[Placed], label: str) -> list[Problem]:
    references: dict[str, str] = {}
    for key, _, study in cells:
        references.setdefault(study.compare.to, key)
    if len(references) > 1:
        listed = "; ".join(f"{arm} in {key}" for arm, key in references.items())
        message = f"the studies are compared to different arms ({listed}); one arm must be the reference of all: see `compare.to`"
        return [Problem(label, "", message)]
    (reference,) = references
    shared = shared_arms([study for _, _, study in cells], reference)
    if len(cells) > 1 and not shared:
        listed = "; ".join(f"{key}: {one_of(arm for arm in study.arms if arm != reference)}" for key, _, study in cells)
        nothing = f"no arm but {reference} is in two studies or more, so there is nothing to say over tasks"
        message = f"{nothing}. Arms are matched by name: {listed}"
        return [Problem(label, "", message)]
    return []


def shared_arms(studies: Sequence[Study], reference: str) -> list[str]:
    """Arms of two studies or more, but for the reference."""
    counts: dict[str, int] = {}
    for study in studies:
        for arm in study.arms:
            counts[arm] = counts.get(arm, 0) + 1
    return [arm for arm, count in counts.items() if count > 1 and arm != reference]


def task_name(study: Study) -> str:
    """The task by its name."""
    return ALIASES.get(study.task, study.task) if isinstance(study.task, str) else study.task.name


def model_name(study: Study) -> str:
    """The model as plans call it."""
    model = study.model_of(study.compare.to)
    if isinstance(model, PresetModel):
        preset = parse_preset(model)
        assert preset is not None, "a mapping names a preset, or is refused"
        return preset_name(preset)
    return str(model)
