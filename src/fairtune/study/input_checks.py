"""What a study names outside of its file: data and models, looked at before anything is planned, and without torch.

All that is wrong is told at once, with the line that names it: files that are not there, columns and labels that are not in them,
tasks and models that nobody has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from fairtune.core.errors import DataError, FairtuneError, ModelError
from fairtune.models.presets import parse_preset
from fairtune.models.sources import check_model, require_here
from fairtune.settings.file_task import FileTask
from fairtune.study.places import absolute_folder, expanded
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.yaml_tree import Path
from fairtune.tasks.catalogue import task_names, unknown
from fairtune.tasks.corpora import corpus_names
from fairtune.tasks.definitions import ALIASES, DEFINITIONS
from fairtune.tasks.descriptions import descriptions
from fairtune.tasks.published import is_kept

FILES = ("train", "validation", "test")


def input_problems(data: Mapping[str, Any], origins: Origins, base: FilePath) -> list[Problem]:
    """What is wrong with the data and the models that a study names; what its schema refuses is not looked at.

    Args:
        data: of the study, as it was written.
        base: where relative paths start.
    """
    models = _model_problems(data, base, check_model)
    found = [*_task_problems(data.get("task"), base), *_name_problems("train_on", data.get("train_on")), *models]
    return [Problem(origins.of(path), dotted(path), message) for path, message in dict.fromkeys(found)]


def absences(data: Mapping[str, Any], origins: Origins, base: FilePath) -> list[Problem]:
    """What of it is right but not on this machine, and cannot be fetched: published data, and models of the hub."""
    found = [absence for name in ("task", "train_on") for absence in _absent_data(name, data.get(name))]
    found += [] if input_problems(data, origins, base) else _model_problems(data, base, require_here)
    return [Problem(origins.of(path), dotted(path), message) for path, message in dict.fromkeys(found)]


def _task_problems(task: Any, base: FilePath) -> Iterator[tuple[Path, str]]:
    if isinstance(task, str):
        yield from _name_problems("task", task)
        return
    if not isinstance(task, dict):
        return
    try:
        spec = FileTask.model_validate(task)
    except ValidationError:
        return  # reported by its schema
    files = {split: str(base / expanded(file)) for split in FILES if (file := getattr(spec, split))}
    named = spec.model_copy(update=files).model_dump_json(exclude_unset=True)
    for field, message in _file_problems(named, tuple(map(_state, files.values()))):
        yield ("task", field), message


def _name_problems(field: str, name: Any) -> Iterator[tuple[Path, str]]:
    """That a task is not in the catalogue."""
    known = {*task_names(), *(corpus_names() if field == "task" else ())}
    if isinstance(name, str) and ALIASES.get(name, name) not in known:
        yield (field,), f"'{name}': {unknown(name)}"


def _absent_data(field: str, name: Any) -> Iterator[tuple[Path, str]]:
    """That nothing here has a task's data, and that it cannot be fetched."""
    wanted = ALIASES.get(name, name) if isinstance(name, str) else None
    described = next((task for task in descriptions() if task.name == wanted), None) if wanted else None
    if described is not None and described.availability.missing and not _is_kept(described.name):
        yield (field,), f"'{name}': {'; '.join(described.availability.missing).removesuffix('.')}."


def _is_kept(name: str) -> bool:
    definition = next((task for task in DEFINITIONS if task.name == name), None)
    try:
        return definition is not None and is_kept(definition)
    except DataError:
        return False


def _model_problems(
    data: Mapping[str, Any], base: FilePath, check: Callable[[str], None]
) -> Iterator[tuple[Path, str]]:
    """What a check says of each model, once."""
    arms = data.get("arms")
    places: dict[Path, Any] = {("model",): data.get("model")}
    if isinstance(arms, dict):
        places |= {("arms", name, "model"): arm.get("model") for name, arm in arms.items() if isinstance(arm, dict)}
    seen = set()
    for path, name in places.items():
        if isinstance(name, str) and name and name not in seen and not _is_wrong_preset(name):
            seen.add(name)
            try:
                check(absolute_folder(name, base) or name)
            except (ModelError, OSError, ValueError) as error:
                yield path, str(error).removeprefix("model ")


def _is_wrong_preset(name: str) -> bool:
    """Whether it is a preset that cannot be, which is reported with the study's other fields."""
    try:
        parse_preset(name)
    except FairtuneError:
        return True
    return False


@lru_cache(maxsize=64)
def _file_problems(spec: str, states: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:  # noqa: ARG001 - part of the key
    """Of a task's files, looked at once for all profiles, as long as they are as they were."""
    from fairtune.tasks.file_checks import file_problems  # Arrow, which a study of a catalogue's task need not wait for

    return tuple(file_problems(FileTask.model_validate_json(spec)))


def _state(file: str) -> Any:
    """By what it shows that a file, or one of a folder, was changed."""
    path = FilePath(file)
    try:
        found = sorted(path.iterdir()) if path.is_dir() else [path]
        return tuple((one.name, one.stat().st_size, one.stat().st_mtime_ns) for one in found)
    except (OSError, ValueError):
        return None
