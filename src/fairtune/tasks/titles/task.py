"""The task `titles`: trained on titles made of correct ones, reported on real extracted titles that people judged."""

from __future__ import annotations

import json
from pathlib import Path

from fairtune.core.errors import DataError, one_of
from fairtune.core.files import sha256_of
from fairtune.tasks.duplicates import without_duplicates
from fairtune.tasks.reading.files import file_identity
from fairtune.tasks.reading.rows import read_rows
from fairtune.tasks.splits import (
    ExampleColumns,
    by_hash,
    make_split,
    read_labels,
)
from fairtune.tasks.stores import MIRROR, mirror_folder
from fairtune.tasks.task import Task
from fairtune.tasks.task_cache import prepared
from fairtune.tasks.titles.files import read_titles
from fairtune.tasks.titles.made_titles import MadeTitle, make_titles

NAME, METRIC = "titles", "f1"
JUDGED = "citeseerx.jsonl.gz"
"""The file of the mirror's folder `titles` that is reported; all the others hold correct titles."""
ROWS, SEED, HELD_OUT = 20_000, 0, 0.05
COLUMN = ExampleColumns(("title",), "label", {"0": 0, "1": 1}, ("wrong", "correct"))


def titles() -> Task:
    """Made titles train and select, the mirror's judged ones are reported; none that is reported is trained on."""
    folder = _folder()
    judged, correct = folder / JUDGED, correct_files(folder)

    def make(aside: Path) -> Task:
        made = aside / "made.jsonl"
        with made.open("w", encoding="utf-8") as handle:
            for row in made_titles():
                handle.write(json.dumps({"title": row.title, "label": row.label, "kind": row.kind}) + "\n")
        rows = read_rows(made, COLUMN.text, COLUMN.label, aside / "made.rows", "kind")
        parts = by_hash(rows, COLUMN.text, {"validation": HELD_OUT})
        parts["test"] = read_rows(judged, COLUMN.text, COLUMN.label, aside / "judged.rows")
        _, spellings = read_labels(parts, COLUMN.label, list(COLUMN.numbers))
        splits = {name: make_split(part, COLUMN.spelled(spellings), name, aside) for name, part in parts.items()}
        source = (
            f"local mirror; {ROWS:,} titles made of {one_of(f.name.partition('.')[0] for f in correct)}, seed {SEED}"
        )
        return Task(NAME, METRIC, COLUMN.names, splits, f"{source}; reported on {JUDGED.partition('.')[0]}")

    held = [file_identity(file) for file in (judged, *correct)]
    return without_duplicates(prepared([NAME, ROWS, SEED, HELD_OUT, held, _makers()], make))


def made_titles() -> list[MadeTitle]:
    """The titles that are made of the mirror's correct ones, each with its kind; row i of the split is the i-th of them."""
    return make_titles(read_titles(correct_files(_folder())), ROWS, SEED)


def missing() -> str | None:
    """What stands in the way of this task here."""
    try:
        _folder()
    except DataError as error:
        return str(error).partition(": ")[2]
    return None


def correct_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.jsonl.gz") if file.name != JUDGED)


def _folder() -> Path:
    mirror = mirror_folder()
    folder = None if mirror is None else mirror / NAME
    if folder is not None and (folder / JUDGED).is_file() and correct_files(folder):
        return folder
    raise DataError(
        f"task '{NAME}': no data. {MIRROR} names no folder with {NAME}/{JUDGED} and at least one file of correct titles beside "
        "it. Add them; or make a training set of your own titles with `fairtune data make-titles OUT --from FILE` and give "
        "your files: `task:` with `train`, `test`, `text: title` and `label: label`."
    )


def _makers() -> list[str]:
    """What the makers of titles are, since another way of making gives another training set."""
    return [sha256_of(file) for file in sorted(Path(__file__).parent.glob("*.py"))]
