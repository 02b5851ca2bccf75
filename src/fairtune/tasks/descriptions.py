"""What the catalogue says of each task: columns, labels, how its splits are used, and where its data would come from here.

No network is asked for it. Rows are those that are here: the files of a mirror are counted once, and how many is kept.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError, one_of
from fairtune.core.files import read_json
from fairtune.tasks.corpora import HEAD, METRIC
from fairtune.tasks.definitions import CATALOGUE, TEXTS, TITLES, DataSet, Definition
from fairtune.tasks.registry import RegisteredTask, registered_tasks
from fairtune.tasks.stores import (
    MIRROR,
    counted_rows,
    forbidding,
    mirror_file,
    mirror_folder,
    package_file,
    wanted_files,
)
from fairtune.tasks.task import SPLITS
from fairtune.tasks.titles.task import missing as no_titles

HUB, HUB_CACHE, LOCAL_MIRROR = "hub", "hub cache", "local mirror"
MADE = "made of the local mirror's titles"
CLASSIFY, PAIR, LANGUAGE_MODEL = "classify", "pair", "language model"


@dataclass(frozen=True)
class Availability:
    """What to expect when the task is loaded.

    Args:
        source: what will be read.
        missing: what stands in the way; nothing if the task can be loaded.
        rows: rows of each role's split here, where they are known.
        local: whether it is read from this machine, so that what a hub has says nothing of it.
    """

    source: str
    missing: str = ""
    rows: dict[str, int] = field(default_factory=dict)
    local: bool = True


def find_availability(task: Definition) -> Availability:
    """Where a published task would be read here."""
    places, folder = task.places(), mirror_folder()
    if task.data.package or task is TITLES:
        source, missing = (str(task.data), _no_package(task.data)) if task.data.package else (MADE, no_titles())
        here = {} if missing else {role: data.rows[split] for role, (data, split) in places.items()}
        return Availability(source, missing or "", here)
    if folder is not None and not folder.is_dir():
        return Availability(LOCAL_MIRROR, f"{MIRROR} is {folder}, which is not a folder; fix or unset it")
    if folder is not None and (folder / task.data.folder).is_dir():
        lacking = one_of(file for file in wanted_files(task) if not (folder / file).is_file())
        missing = f"the mirror lacks {lacking}; add it, or unset {MIRROR} to use the hub" if lacking else ""
        counted = {role: counted_rows(folder / mirror_file(*place)) for role, place in places.items()}
        return Availability(LOCAL_MIRROR, missing, _known(counted))
    sets = {data for data, _ in places.values()}
    commits = " and ".join(f"{d.repository} at {d.revision[:8]}" for d in sorted(sets, key=lambda d: d.folder))
    if all(_hub_info(data).is_file() for data in sets):
        rows = _known({role: _cached_rows(data, split) for role, (data, split) in places.items()})
        return Availability(f"{HUB_CACHE}, {commits}", "", rows, local=len(rows) == len(places))
    offline = one_of(forbidding())
    missing = f"no local mirror has it, and {offline} forbids the hub; set {MIRROR} to a folder that has it, or unset {offline}"
    return Availability(f"{HUB}, {commits}, whose rows these are", missing if offline else "", local=False)


def _no_package(data: DataSet) -> str | None:
    try:
        package_file(data)
    except DataError as error:
        return str(error).partition(": ")[2].rstrip(".")
    return None


def _known(rows: dict[str, int | None]) -> dict[str, int]:
    return {role: count for role, count in rows.items() if count is not None}


def _cached_rows(data: DataSet, split: str) -> int | None:
    """The rows of a split in the hub's cache, as `datasets` counted them."""
    splits = (read_json(_hub_info(data)) or {}).get("splits")
    facts = splits.get(split) if isinstance(splits, dict) else None
    rows = facts.get("num_examples") if isinstance(facts, dict) else None
    return rows if isinstance(rows, int) else None


def _hub_info(data: DataSet) -> Path:
    """What `datasets` writes on this machine once it has prepared the data set at its commit."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{home}/huggingface"
    cache = Path(os.environ.get("HF_DATASETS_CACHE") or f"{home}/datasets").expanduser()
    owner, _, name = data.repository.partition("/")
    snake = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", name).lower()
    return cache / f"{owner}___{snake}" / data.config / "0.0.0" / data.revision / "dataset_info.json"


@dataclass(frozen=True)
class SplitUse:
    """What one role gets.

    Args:
        split: the published split it is taken from.
        rows: how many that split has; None where no one has counted.
        share: how much of the split it gets, where that is not all.
        here: how many rows the split has on this machine, where that is known.
        local: whether it is read from this machine; then nothing is said of rows that are not there.
    """

    split: str
    rows: int | None
    share: str = ""
    here: int | None = None
    local: bool = False

    def __str__(self) -> str:
        """As many as are here; those of the hub where it will be read; a dash where neither is known."""
        if self.here is None and self.local:
            return "-"
        return self._text(self.here if self.here is not None else self.rows)

    @property
    def published(self) -> str:
        """As many as were published."""
        return self._text(self.rows)

    def _text(self, count: int | None) -> str:
        rows = "all" if count is None else f"{count:,}"
        return f"{self.share} of {rows}" if self.share else rows


@dataclass(frozen=True)
class Description:
    """A task of the catalogue.

    Args:
        uses: what trains, what selects (`validation`) and what is reported (`test`).
        address: the data sets on the hub, each with its config and commit.
        files: where a mirror keeps the task.
        source: what would be read here.
        missing: what stands in the way; nothing if the task can be loaded.
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

    @property
    def parts(self) -> list[str]:
        """The splits that are not whole here, as far as that is known."""
        found = {
            use.split: use for use in self.uses.values() if use.rows and use.here is not None and use.here < use.rows
        }
        return [f"{split} has {use.here:,} of {use.rows:,} rows" for split, use in found.items()]

    def as_json(self) -> dict[str, Any]:
        facts = asdict(self)
        for use in facts["uses"].values():
            del use["local"]
        return {**facts, "classes": len(self.labels) or None, "missing": [self.missing] if self.missing else []}


def descriptions() -> list[Description]:
    """Every task of the catalogue, in its order."""
    return [*map(_published, (*CATALOGUE.values(), *TEXTS)), *map(_registered, registered_tasks().values())]


def _published(task: Definition) -> Description:
    found, data = find_availability(task), task.data
    remarks, licence = [], data.licence
    if task.trained_on:
        remarks.append(f"trained on {task.trained_on.folder}")
        licence += f"; {task.trained_on.folder}: {task.trained_on.licence}"
    if task.hidden:
        remarks.append(
            "the hub's test labels are kept secret (-1): from the hub, half of the validation split is reported"
        )
    uses = _uses(task, found)
    if task.shares and not task.labels:
        remarks.append(
            "validation and test are taken out of the training split, by a hash of the text, among its first "
            f"{uses['test'].rows:,} rows"
        )
    files = {role: mirror_file(*place) for role, place in task.places().items() if not data.package}
    if task is TITLES:
        files = {"test": files["test"], "train": f"{data.folder}/<correct titles>.jsonl.gz"}
    hub = [one for one, _ in task.places().values() if one.repository]
    return Description(
        name=task.name,
        kind=_kind(task.labels, task.text),
        about=data.about,
        columns=task.text,
        label=task.label if task.labels else None,
        labels=task.labels,
        metric=task.metric if task.labels else METRIC,
        uses=uses,
        licence=licence,
        address=tuple(dict.fromkeys(f"{one.repository}, config {one.config}, commit {one.revision}" for one in hub)),
        files=tuple(files.values()),
        source=found.source,
        missing=found.missing,
        remark="; ".join([*remarks, *filter(None, [task.remark])]),
    )


def _uses(task: Definition, found: Availability) -> dict[str, SplitUse]:
    shares, uses = dict(task.shares), {}
    for role, (data, split) in task.places().items():
        uses[role] = SplitUse(split, data.rows[split], "", found.rows.get(role), found.local)
    train = uses["train"]
    if shares and not task.labels:
        here = None if train.here is None else min(HEAD, train.here)
        head = here or min(HEAD, train.rows or 0)
        held_out = SplitUse("train", head, "", here, found.local)
    elif shares:
        uses["train"] = replace(train, share=f"{1 - sum(shares.values()):.0%}")
        held_out = train
    uses |= {role: replace(held_out, share=f"{share:.0%}") for role, share in shares.items()}
    if task.test is None or (task.hidden and found.source != LOCAL_MIRROR):
        uses["validation"] = uses["test"] = replace(uses["validation"], share="half")
    return {role: uses[role] for role in SPLITS}


def _registered(task: RegisteredTask) -> Description:
    spec, uses = task.spec, {}
    held_out = {split: getattr(spec.holdout, split) for split in SPLITS if split not in task.given}
    for split in SPLITS:
        share = held_out.get(split, 1 - sum(held_out.values()) if split == "train" else 1)
        uses[split] = SplitUse(split if split in task.given else "train", None, "" if share == 1 else f"{share:.0%}")
    lacking = [str(one) for one in task.given.values() if isinstance(one, Path) and not one.exists()]
    return Description(
        name=task.name,
        kind=_kind(not task.is_text, spec.text),
        about=task.about,
        columns=spec.text,
        label=None if task.is_text else spec.label,
        labels=spec.labels or (),
        metric=METRIC if task.is_text else spec.metric,
        uses=uses,
        licence=task.licence,
        address=(),
        files=(),
        source=one_of(dict.fromkeys(map(task.called, task.given))),
        missing=f"there is no {one_of(lacking)}" if lacking else "",
        remark="added by a plug-in",
    )


def _kind(classifies: object, text: tuple[str, ...]) -> str:
    if not classifies:
        return LANGUAGE_MODEL
    return PAIR if len(text) > 1 else CLASSIFY
