"""What the catalogue says of each task: columns, labels, how its splits are used, and where its data would come from here.

No network is asked for it, and no data is read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fairtune.core.errors import one_of
from fairtune.settings.file_task import FileTask
from fairtune.tasks.corpora import HEAD, METRIC
from fairtune.tasks.definitions import CATALOGUE, TEXTS, TITLES, Definition
from fairtune.tasks.registry import RegisteredTask, registered_tasks
from fairtune.tasks.stores import Hub, find_store, mirror_files
from fairtune.tasks.task import SPLITS
from fairtune.tasks.titles.task import missing as no_titles

CLASSIFY, PAIR, LANGUAGE_MODEL = "classify", "pair", "language model"


@dataclass(frozen=True)
class SplitUse:
    """What one role gets: a published split, or a share of it; `rows` is None where no one has counted."""

    split: str
    rows: int | None
    share: str = ""

    def __str__(self) -> str:
        rows = "all" if self.rows is None else f"{self.rows:,}"
        return f"{self.share} of {rows}" if self.share else rows


@dataclass(frozen=True)
class Description:
    """A task of the catalogue.

    Args:
        uses: what trains, what selects (`validation`) and what is reported (`test`).
        address: the data sets on the hub, each with its config and commit.
        files: where a mirror keeps the task.
        source: what would be read here.
        missing: what stands in the way; empty if nothing is known to.
        remark: what else a user must know of the splits.
    """

    name: str
    kind: str
    about: str
    columns: tuple[str, ...]
    label: str | None
    labels: tuple[str, ...]
    metric: str
    uses: dict[str, SplitUse]
    licence: str
    address: tuple[str, ...]
    files: tuple[str, ...]
    source: str
    missing: str
    remark: str = ""

    def as_json(self) -> dict[str, Any]:
        missing = [self.missing] if self.missing else []
        return {**asdict(self), "classes": len(self.labels) or None, "missing": missing}


def descriptions() -> list[Description]:
    """Every task of the catalogue, in its order."""
    return [*map(_published, (*CATALOGUE.values(), *TEXTS)), *map(_registered, registered_tasks().values())]


def _published(task: Definition) -> Description:
    store = find_store(task)
    from_hub, source, missing = isinstance(store, Hub), str(store), store.missing()
    hub = [data for data, _ in task.places().values() if data.repository]
    if from_hub:
        source = f"hub, {one_of(dict.fromkeys(data.repository for data in hub))}"
    uses, files = _uses(task, from_hub), [] if task.data.package else mirror_files(task)
    if task is TITLES:
        source, missing = "made of the local mirror's titles", no_titles()
        files = [files[1], f"{task.data.folder}/<correct titles>.jsonl.gz"]
    remarks, licence = [task.remark] if task.remark else [], task.data.licence
    if task.trained_on:
        remarks.append(f"trained on {task.trained_on.folder}")
        licence += f"; {task.trained_on.folder}: {task.trained_on.licence}"
    if task.hidden:
        remarks.append(
            "the hub's test labels are kept secret (-1): from the hub, half of the validation split is reported"
        )
    if task.shares and not task.labels:
        remarks.append(
            "validation and test are taken out of the training split, by a hash of the text, among its first "
            f"{uses['test'].rows:,} rows"
        )
    return Description(
        **_facts(task),
        about=task.data.about,
        uses=uses,
        licence=licence,
        address=tuple(dict.fromkeys(f"{one.repository}, config {one.config}, commit {one.revision}" for one in hub)),
        files=tuple(files),
        source=source,
        missing=missing,
        remark="; ".join(remarks),
    )


def _uses(task: Definition, from_hub: bool) -> dict[str, SplitUse]:
    uses = {role: SplitUse(split, data.rows[split]) for role, (data, split) in task.places().items()}
    train = uses["train"]
    if task.shares and task.labels:
        uses["train"] = replace(train, share=f"{1 - sum(task.shares.values()):.0%}")
    searched = train.rows if task.labels else min(HEAD, train.rows or HEAD)
    uses |= {role: replace(train, rows=searched, share=f"{share:.0%}") for role, share in task.shares.items()}
    if task.test is None or (task.hidden and from_hub):
        uses["validation"] = uses["test"] = replace(uses["validation"], share="half")
    return {role: uses[role] for role in SPLITS}


def _registered(task: RegisteredTask) -> Description:
    spec, uses = task.spec, {}
    for split in SPLITS:
        share = spec.shares.get(split, 1 - sum(spec.shares.values()) if split == "train" else 1)
        uses[split] = SplitUse(split if split in task.given else "train", None, "" if share == 1 else f"{share:.0%}")
    lacking = one_of(one for one in task.given.values() if isinstance(one, Path) and not one.exists())
    return Description(
        **_facts(spec),
        about=task.about,
        uses=uses,
        licence=task.licence,
        address=(),
        files=(),
        source=one_of(dict.fromkeys(map(task.called, task.given))),
        missing=f"there is no {lacking}" if lacking else "",
        remark="added by a plug-in",
    )


def _facts(task: Definition | FileTask) -> dict[str, Any]:
    """What both kinds of tasks say in the same words; text for language models has no labels."""
    labels = task.labels or ()
    kind = PAIR if len(task.text) > 1 else CLASSIFY
    return {
        "name": task.name,
        "kind": kind if labels else LANGUAGE_MODEL,
        "columns": task.text,
        "label": task.label if labels else None,
        "labels": labels,
        "metric": task.metric if labels else METRIC,
    }
