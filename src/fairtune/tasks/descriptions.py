"""What the catalogue says of each task: columns, labels, how its splits are used, and where its data would come from here.

No network is asked for it. Rows are those that are here: the files of a mirror are counted once, and how many is kept.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError, one_of
from fairtune.core.files import read_json
from fairtune.tasks import corpora
from fairtune.tasks.definitions import (
    DEFINITIONS,
    MOVIE_REVIEWS,
    TEXTS,
    DataSet,
    Definition,
    PackageData,
    TextDefinition,
)
from fairtune.tasks.published import HELD_OUT, MOVIE_COLUMN, MOVIE_SHARES
from fairtune.tasks.registry import RegisteredTask, registered_tasks
from fairtune.tasks.stores import MIRROR, counted_rows, forbidding, mirror_file, mirror_folder, package_file
from fairtune.tasks.task import SPLITS
from fairtune.tasks.titles import task as title_task

HUB, HUB_CACHE, LOCAL_MIRROR = "hub", "hub cache", "local mirror"


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
    missing: tuple[str, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)
    local: bool = True


def package_availability(data: PackageData) -> Availability:
    try:
        package_file(data.package, data.inside, data.folder)
    except DataError as error:
        return Availability(str(data), (str(error).partition(": ")[2].rstrip("."),))
    return Availability(str(data))


def find_availability(task: Definition | TextDefinition) -> Availability:
    """Of a task that the mirror or the hub has."""
    if isinstance(task.data, PackageData):
        return package_availability(task.data)
    folder = mirror_folder()
    if folder is not None and not folder.is_dir():
        return Availability(LOCAL_MIRROR, (f"{MIRROR} is {folder}, which is not a folder; fix or unset it",))
    if folder is not None and (folder / task.data.folder).is_dir():
        return _mirrored(task, folder)
    sets = {data for data, _ in task.places().values()}
    if all(_in_hub_cache(data) for data in sets):
        counted = {role: _cached_rows(data, split) for role, (data, split) in task.places().items()}
        known = {role: rows for role, rows in counted.items() if rows is not None}
        return Availability(f"{HUB_CACHE}, {_commits(sets)}", (), known, local=len(known) == len(counted))
    offline = one_of(forbidding())
    ways = f"set {MIRROR} to a folder that has it, or unset {offline}"
    missing = (f"no local mirror has it, and {offline} forbids the hub; {ways}",) if offline else ()
    return Availability(f"{HUB}, {_commits(sets)}, whose rows these are", missing, local=False)


def _mirrored(task: Definition | TextDefinition, folder: Path) -> Availability:
    files = {role: mirror_file(data, split) for role, (data, split) in task.places().items()}
    lacking = [file for file in files.values() if not (folder / file).is_file()]
    counted = {role: counted_rows(folder / file) for role, file in files.items()}
    return Availability(
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
    return _hub_info(data).is_file()


def _cached_rows(data: DataSet, split: str) -> int | None:
    """The rows of a split in the hub's cache, as `datasets` counted them."""
    found = (read_json(_hub_info(data)) or {}).get("splits")
    facts = found.get(split) if isinstance(found, dict) else None
    rows = facts.get("num_examples") if isinstance(facts, dict) else None
    return rows if isinstance(rows, int) else None


def _hub_info(data: DataSet) -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{home}/huggingface"
    cache = Path(os.environ.get("HF_DATASETS_CACHE") or f"{home}/datasets").expanduser()
    owner, _, name = data.repository.partition("/")
    snake = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", name).lower()
    return cache / f"{owner}___{snake}" / data.config / "0.0.0" / data.revision / "dataset_info.json"


JUDGED_ROWS = 976
"""CiteSeerX titles with a judgement, empty ones left out."""
CLASSIFY, PAIR, LANGUAGE_MODEL = "classify", "pair", "language model"


@dataclass(frozen=True)
class SplitUse:
    """What one role gets.

    Args:
        split: the published split it is taken from.
        rows: how many that split has; None where nobody has counted.
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
        """As many as whoever published them has."""
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
    availability: Availability
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
        found = facts.pop("availability")
        facts["classes"] = len(self.labels) or None
        return {**facts, "source": found["source"], "missing": list(found["missing"])}


def descriptions() -> list[Description]:
    """Every task of the catalogue, in its order."""
    own = [_movie_reviews(), *map(_published, DEFINITIONS), _titles(), *map(_text, TEXTS)]
    return [*own, *map(_registered, registered_tasks().values())]


def _published(task: Definition) -> Description:
    found = find_availability(task)
    places = task.places()
    uses = {
        role: SplitUse(split, data.rows[split], "", found.rows.get(role), found.local)
        for role, (data, split) in places.items()
    }
    remarks = [f"trained on {task.trained_on.folder}"] if task.trained_on else []
    if "validation" not in uses:
        uses = {"train": uses["train"], "validation": _part(uses["train"], f"{HELD_OUT:.0%}"), **uses}
        uses["train"] = _part(uses["train"], f"{1 - HELD_OUT:.0%}")
    if task.hidden:
        remarks.append(
            "the hub's test labels are kept secret (-1): from the hub, half of the validation split is reported"
        )
    if task.test is None or (task.hidden and found.source != LOCAL_MIRROR):
        uses["validation"] = uses["test"] = _part(uses["validation"], "half")
    return Description(
        name=task.name,
        kind=PAIR if len(task.text) > 1 else CLASSIFY,
        about=task.data.about,
        columns=task.text,
        label=task.label,
        labels=task.labels,
        metric=task.metric,
        uses=uses,
        licence=_licence(task),
        address=tuple(dict.fromkeys(_address(data) for data, _ in places.values())),
        files=tuple(mirror_file(data, split) for data, split in places.values()),
        availability=found,
        remark="; ".join(remarks),
    )


def _text(task: TextDefinition) -> Description:
    found, data, places = find_availability(task), task.data, task.places()
    package = isinstance(data, PackageData)  # which has the rows that it has, if it is there
    rows = dict(data.rows) if package and not found.missing else {}
    uses = {
        role: SplitUse(split, data.rows[split], "", found.rows.get(role, rows.get(split)), found.local)
        for role, (_, split) in places.items()
    }
    uses.setdefault("train", SplitUse("train", data.rows["train"], "", rows.get("train"), found.local))
    remark = ""
    if task.validation is None:
        train = uses["train"]
        head = min(corpora.HEAD, data.rows["train"] if train.here is None else train.here)
        here = None if train.here is None else head
        uses["validation"] = uses["test"] = SplitUse("train", head, f"{corpora.HELD_OUT:.0%}", here, found.local)
        remark = f"validation and test are taken out of the training split, by a hash of the text, among its first {head:,} rows"
    elif task.test is None:
        uses["validation"] = uses["test"] = _part(uses["validation"], "half")
    return Description(
        name=task.name,
        kind=LANGUAGE_MODEL,
        about=data.about,
        columns=(task.text,),
        label=None,
        labels=(),
        metric=corpora.METRIC,
        uses=uses,
        licence=data.licence,
        address=() if isinstance(data, PackageData) else (_address(data),),
        files=tuple(mirror_file(data, split) for data, split in places.values()),
        availability=found,
        remark=remark,
    )


def _movie_reviews() -> Description:
    data, found = MOVIE_REVIEWS, package_availability(MOVIE_REVIEWS)
    here = None if found.missing else data.rows["train"]
    shares = {"train": 1 - sum(MOVIE_SHARES.values()), **MOVIE_SHARES}
    return Description(
        name=data.folder,
        kind=CLASSIFY,
        about=data.about,
        columns=MOVIE_COLUMN.text,
        label=MOVIE_COLUMN.label,
        labels=MOVIE_COLUMN.names,
        metric="accuracy",
        uses={
            role: SplitUse("train", data.rows["train"], f"{share:.0%}", here, local=True)
            for role, share in shares.items()
        },
        licence=data.licence,
        address=(),
        files=(),
        availability=found,
        remark="split by a hash of the text; 731 of SST-2's 872 validation sentences are among its rows",
    )


def _titles() -> Description:
    held, missing = title_task.HELD_OUT, title_task.missing()
    made, judged = (None, None) if missing else (title_task.ROWS, JUDGED_ROWS)
    return Description(
        name=title_task.NAME,
        kind=CLASSIFY,
        about="Whether a title that a machine extracted from a paper is right: made titles train, real ones are reported.",
        columns=title_task.COLUMN.text,
        label=title_task.COLUMN.label,
        labels=title_task.COLUMN.names,
        metric=title_task.METRIC,
        uses={
            "train": SplitUse("made", title_task.ROWS, f"{1 - held:.0%}", made, local=True),
            "validation": SplitUse("made", title_task.ROWS, f"{held:.0%}", made, local=True),
            "test": SplitUse("citeseerx", JUDGED_ROWS, "", judged, local=True),
        },
        licence="research use; the made titles as their sources",
        address=(),
        files=(f"{title_task.NAME}/{title_task.JUDGED}", f"{title_task.NAME}/<correct titles>.jsonl.gz"),
        availability=Availability("made of the local mirror's titles", (missing,) if missing else ()),
        remark="a set of your own titles is made with `fairtune data make-titles`",
    )


def _registered(task: RegisteredTask) -> Description:
    spec, uses = task.spec, {}
    held_out = {split: getattr(spec.holdout, split) for split in SPLITS if split not in task.given}
    for split in SPLITS:
        share = held_out.get(split, 1 - sum(held_out.values()) if split == "train" else 1)
        uses[split] = SplitUse(split if split in task.given else "train", None, "" if share == 1 else f"{share:.0%}")
    lacking = [str(one) for one in task.given.values() if isinstance(one, Path) and not one.exists()]
    sources = one_of(dict.fromkeys(map(task.called, task.given)))
    return Description(
        name=task.name,
        kind=LANGUAGE_MODEL if task.is_text else PAIR if len(spec.text) > 1 else CLASSIFY,
        about=task.about,
        columns=spec.text,
        label=None if task.is_text else spec.label,
        labels=spec.labels or (),
        metric=corpora.METRIC if task.is_text else spec.metric,
        uses=uses,
        licence=task.licence,
        address=(),
        files=(),
        availability=Availability(sources, (f"there is no {one_of(lacking)}",) if lacking else ()),
        remark="added by a plug-in",
    )


def _part(use: SplitUse, share: str) -> SplitUse:
    return SplitUse(use.split, use.rows, share, use.here, use.local)


def _licence(task: Definition) -> str:
    other = task.trained_on
    return task.data.licence if other is None else f"{task.data.licence}; {other.folder}: {other.licence}"


def _address(data: DataSet) -> str:
    return f"{data.repository}, config {data.config}, commit {data.revision}"
