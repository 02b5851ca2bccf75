"""What can be wrong with the data and the models that a study names: checked before anything is planned, and without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import product
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from fairtune.core.errors import DataError, FairtuneError, ModelError
from fairtune.models.sources import check_model, require_here
from fairtune.settings.few_labels import few_labels
from fairtune.settings.file_task import FileTask
from fairtune.settings.metrics import METRICS
from fairtune.study.arm_checks import is_preset
from fairtune.study.schema import Study
from fairtune.study.source import absolute_folder, expanded
from fairtune.study.study_checks import Fault
from fairtune.study.yaml_tree import Path
from fairtune.tasks import Task
from fairtune.tasks.catalogue import task_names, unknown
from fairtune.tasks.corpora import corpus_names
from fairtune.tasks.definitions import ALIASES, CATALOGUE, TITLES
from fairtune.tasks.descriptions import descriptions
from fairtune.tasks.problems import Problems
from fairtune.tasks.published import is_kept
from fairtune.tasks.reading.files import file_identity
from fairtune.tasks.splits import fixed_sample, require_per_class


def input_problems(data: Mapping[str, Any], base: FilePath) -> Iterator[Fault]:
    """What is wrong with the data and the models that a study names; what its schema refuses is skipped."""
    task = data.get("task")
    for field, known in (("task", [*task_names(), *corpus_names()]), ("train_on", task_names())):
        name = data.get(field)
        if isinstance(name, str) and ALIASES.get(name, name) not in known:
            yield (field,), f"'{name}': {unknown(name)}"
    if isinstance(task, dict):
        yield from _files(task, base)
    yield from _models(data, base, check_model)


def absences(data: Mapping[str, Any], base: FilePath, fetched: bool = False) -> Iterator[Fault]:
    """What is right but not on this machine, published data and models of the hub: what cannot be fetched, or has yet to be."""
    for field in ("task", "train_on"):
        wanted = ALIASES.get(name, name) if isinstance(name := data.get(field), str) else None
        found = next((task for task in descriptions() if task.name == wanted), None) if wanted else None
        if found is not None and found.missing and not _is_kept(found.name):
            yield (field,), f"'{name}': {found.missing.removesuffix('.')}."
    yield from _models(data, base, partial(require_here, fetched=fetched))


def _is_kept(name: str) -> bool:
    try:
        return name in CATALOGUE and name != TITLES.name and is_kept(CATALOGUE[name])
    except DataError:
        return False


def _files(task: dict[str, Any], base: FilePath) -> Iterator[Fault]:
    try:
        spec = FileTask.model_validate(task)
    except ValidationError:
        return  # reported by its schema
    files = {split: str(base / expanded(str(file))) for split, file in spec.files.items()}
    named = spec.model_copy(update=files).model_dump_json(exclude_unset=True)
    for field, message in _file_problems(named, tuple(map(_state, files.values()))):
        yield ("task", field if field in task else "train"), message


@lru_cache(maxsize=64)
def _file_problems(spec: str, states: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:  # noqa: ARG001 - part of the key
    """What is wrong with a task's files, read once for all profiles unless they have changed."""
    from fairtune.tasks.file_tasks import check_file_task  # a study of a catalogue's task need not wait for Arrow

    problems = Problems()
    with problems.about("train"):
        check_file_task(FileTask.model_validate_json(spec))
    return tuple(problems.found)


def _state(file: str) -> str | None:
    """What a file holds; None where it cannot be read."""
    try:
        return file_identity(FilePath(file))
    except (DataError, ValueError):
        return None


def _models(data: Mapping[str, Any], base: FilePath, check: Callable[[str], None]) -> Iterator[Fault]:
    """What a check says of each model, once."""
    arms = data.get("arms")
    places: dict[Path, Any] = {("model",): data.get("model")}
    if isinstance(arms, dict):
        places |= {("arms", name, "model"): arm.get("model") for name, arm in arms.items() if isinstance(arm, dict)}
    named = {name: path for path, name in reversed(places.items()) if isinstance(name, str) and name}
    for name, path in named.items():
        try:
            if not is_preset(name):  # presets are checked with the study's other fields
                check(absolute_folder(name, base) or name)
        except (ModelError, ValueError) as error:
            yield path, str(error).removeprefix("model ")
        except OSError as error:
            yield path, f"cannot be read: {error.strerror}"


def require_samples(study: Study, data: Task, metric: str) -> None:
    """Refuse samples, metrics and a decision line that the classes of a task do not allow."""
    for arm, own in study.arms.items():
        if few := few_labels(study.settings(arm).examples):
            where = "train" if getattr(own, "examples", None) is None else f"arms.{arm}"
            require_per_class(data.splits["train"], data.labels, few.per_class, f"{where}.examples")
    if problems := list(_metric_problems(study, data, metric)):
        raise FairtuneError("\n".join(problems))


def _metric_problems(study: Study, data: Task, metric: str) -> Iterator[str]:
    compare, classes, task = study.compare, len(data.labels), f"task '{data.name}'"
    if metric in compare.also:
        yield f"compare.also: {metric} is the study's own metric, which has its verdicts anyway; remove it here."
    if compare.threshold == "validation" and classes != 2:
        yield f"compare.threshold: a line is picked between two classes, and {task} has {classes}; use half."
    low, high = METRICS[metric].bounds
    if compare.target is not None and not low <= compare.target <= high:
        allowed = f"from {low:g} to 1; for 85 % write 0.85" if high == 1 else f"{low:g} or more"
        yield f"compare.target: found {compare.target:g}; {metric} is {allowed}."
    places = {claim.metric: "claims.metric" for claim in study.claims if claim.metric}
    places |= {metric: "metric" if study.metric else "task.metric", **dict.fromkeys(compare.also, "compare.also")}
    sizes = dict.fromkeys(study.settings(arm).eval_examples for arm in study.arms)
    for name, place in places.items():
        needed = METRICS[name]
        if not needed.fits(classes):
            yield f"{place}: {name} is for {needed.classes}, and {task} has {classes}; use {needed.instead}."
        splits = ["validation", "test"] if name == metric else ["test"]
        for split, size in product(splits, sizes) if needed.ranks else ():
            found = fixed_sample(data.splits[split], size)
            if len(set(found.labels.tolist())) < 2:
                only = f"one class only ('{data.labels[int(found.labels[0])]}', n = {len(found):,})"
                why = f"{name} says how well classes are ranked, and what is scored of the {split} split of {task} has {only}"
                yield f"{place}: {why}; give it examples of another, or use accuracy."
