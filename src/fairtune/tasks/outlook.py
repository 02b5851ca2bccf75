"""Where a task's data would come from on this machine, found without reading any of it and without a network."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from fairtune.core.errors import DataError, one_of
from fairtune.tasks.definitions import DataSet, Definition, PackageData, TextDefinition
from fairtune.tasks.reading.shards import package_file
from fairtune.tasks.row_counts import known_rows
from fairtune.tasks.stores import MIRROR, forbidding, mirror_file, mirror_folder

HUB, HUB_CACHE, LOCAL_MIRROR = "hub", "hub cache", "local mirror"


@dataclass(frozen=True)
class Outlook:
    """What to expect when the task is loaded.

    Args:
        source: what will be read.
        missing: what stands in the way; nothing if the task can be loaded.
        rows: rows of each role's split, where they are known because the file was read before.
    """

    source: str
    missing: tuple[str, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)


def package_outlook(data: PackageData) -> Outlook:
    try:
        package_file(data.package, data.inside, data.folder)
    except DataError as error:
        return Outlook(str(data), (str(error).partition(": ")[2].rstrip("."),))
    return Outlook(str(data))


def outlook(task: Definition | TextDefinition) -> Outlook:
    """Of a task that the mirror or the hub has."""
    if isinstance(task.data, PackageData):
        return package_outlook(task.data)
    folder = mirror_folder()
    if folder is not None and not folder.is_dir():
        return Outlook(LOCAL_MIRROR, (f"{MIRROR} is {folder}, which is not a folder; mend or unset it",))
    if folder is not None and (folder / task.data.folder).is_dir():
        return _mirrored(task, folder)
    sets = {data for data, _ in task.places().values()}
    if all(_in_hub_cache(data) for data in sets):
        return Outlook(f"{HUB_CACHE}, {_commits(sets)}")
    offline = one_of(forbidding())
    ways = f"set {MIRROR} to a folder that has it, or unset {offline}"
    missing = (f"no local mirror has it, and {offline} forbids the hub; {ways}",) if offline else ()
    return Outlook(f"{HUB}, {_commits(sets)}", missing)


def _mirrored(task: Definition | TextDefinition, folder: Path) -> Outlook:
    files = {role: mirror_file(data, split) for role, (data, split) in task.places().items()}
    lacking = [file for file in files.values() if not (folder / file).is_file()]
    counted = {role: known_rows(folder / file) for role, file in files.items()}
    return Outlook(
        LOCAL_MIRROR,
        (f"the mirror lacks {one_of(lacking)}; add it, or unset {MIRROR} to use the hub",) if lacking else (),
        {role: rows for role, rows in counted.items() if rows is not None},
    )


def _commits(sets: set[DataSet]) -> str:
    return " and ".join(
        f"{data.repository} at {data.revision[:8]}" for data in sorted(sets, key=lambda data: data.folder)
    )


def _in_hub_cache(data: DataSet) -> bool:
    """Whether `datasets` has prepared the data set at its commit on this machine."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{home}/huggingface"
    cache = Path(os.environ.get("HF_DATASETS_CACHE") or f"{home}/datasets").expanduser()
    owner, _, name = data.repository.partition("/")
    snake = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", name).lower()
    return (cache / f"{owner}___{snake}" / data.config / "0.0.0" / data.revision / "dataset_info.json").is_file()
