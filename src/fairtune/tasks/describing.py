"""What the catalogue says of each task: its columns and labels, how its splits are used, and where it would come from here."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

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
from fairtune.tasks.outlook import LOCAL_MIRROR, Outlook, outlook, package_outlook
from fairtune.tasks.packaged import MOVIE_COLUMN, MOVIE_SHARES
from fairtune.tasks.published import HELD_OUT
from fairtune.tasks.stores import mirror_file
from fairtune.tasks.titles import task as title_task

JUDGED_ROWS = 976
"""CiteSeerX titles with a judgement, empty ones left out."""
CLASSIFY, PAIR, LANGUAGE_MODEL = "classify", "pair", "language model"


@dataclass(frozen=True)
class Use:
    """What one role gets.

    Args:
        split: the published split it is taken from.
        rows: how many that split has.
        share: how much of the split it gets, where that is not all.
        here: how many rows the split has on this machine, where that is known.
    """

    split: str
    rows: int
    share: str = ""
    here: int | None = None

    def __str__(self) -> str:
        return f"{self.share} of {self.rows:,}" if self.share else f"{self.rows:,}"


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
    uses: dict[str, Use]
    licence: str
    address: tuple[str, ...]
    files: tuple[str, ...]
    outlook: Outlook
    remark: str = ""

    @property
    def parts(self) -> list[str]:
        """The splits that are not whole here, as far as that is known."""
        found = {use.split: use for use in self.uses.values() if use.here is not None and use.here < use.rows}
        return [f"{split} has {use.here:,} of {use.rows:,} rows" for split, use in found.items()]

    def as_json(self) -> dict[str, Any]:
        facts = asdict(self)
        found = facts.pop("outlook")
        facts["classes"] = len(self.labels) or None
        return {**facts, "source": found["source"], "missing": list(found["missing"])}


def descriptions() -> list[Description]:
    """Every task of the catalogue, in its order."""
    return [_movie_reviews(), *map(_published, DEFINITIONS), _titles(), *map(_text, TEXTS)]


def _published(task: Definition) -> Description:
    found = outlook(task)
    places = task.places()
    uses = {role: Use(split, data.rows[split], "", found.rows.get(role)) for role, (data, split) in places.items()}
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
        outlook=found,
        remark="; ".join(remarks),
    )


def _text(task: TextDefinition) -> Description:
    found, data, places = outlook(task), task.data, task.places()
    uses = {role: Use(split, data.rows[split], "", found.rows.get(role)) for role, (_, split) in places.items()}
    uses.setdefault("train", Use("train", data.rows["train"]))
    remark = ""
    if task.validation is None:
        head = min(corpora.HEAD, data.rows["train"])
        uses["validation"] = uses["test"] = Use("train", head, f"{corpora.HELD_OUT:.0%}")
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
        outlook=found,
        remark=remark,
    )


def _movie_reviews() -> Description:
    data = MOVIE_REVIEWS
    shares = {"train": 1 - sum(MOVIE_SHARES.values()), **MOVIE_SHARES}
    return Description(
        name=data.folder,
        kind=CLASSIFY,
        about=data.about,
        columns=MOVIE_COLUMN.text,
        label=MOVIE_COLUMN.label,
        labels=MOVIE_COLUMN.names,
        metric="accuracy",
        uses={role: Use("train", data.rows["train"], f"{share:.0%}") for role, share in shares.items()},
        licence=data.licence,
        address=(),
        files=(),
        outlook=package_outlook(data),
        remark="split by a hash of the text; 731 of SST-2's 872 validation sentences are among its rows",
    )


def _titles() -> Description:
    held, missing = title_task.HELD_OUT, title_task.missing()
    return Description(
        name=title_task.NAME,
        kind=CLASSIFY,
        about="Whether a title that a machine extracted from a paper is right: made titles train, real ones are reported.",
        columns=title_task.COLUMN.text,
        label=title_task.COLUMN.label,
        labels=title_task.COLUMN.names,
        metric=title_task.METRIC,
        uses={
            "train": Use("made", title_task.ROWS, f"{1 - held:.0%}"),
            "validation": Use("made", title_task.ROWS, f"{held:.0%}"),
            "test": Use("citeseerx", JUDGED_ROWS),
        },
        licence="research use; the made titles as their sources",
        address=(),
        files=(f"{title_task.NAME}/{title_task.JUDGED}", f"{title_task.NAME}/<correct titles>.jsonl.gz"),
        outlook=Outlook("made of the local mirror's titles", (missing,) if missing else ()),
        remark="a set of your own titles is made with `fairtune data make-titles`",
    )


def _part(use: Use, share: str) -> Use:
    return Use(use.split, use.rows, share, use.here)


def _licence(task: Definition) -> str:
    other = task.trained_on
    return task.data.licence if other is None else f"{task.data.licence}; {other.folder}: {other.licence}"


def _address(data: DataSet) -> str:
    return f"{data.repository}, config {data.config}, commit {data.revision}"
