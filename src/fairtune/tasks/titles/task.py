"""The task `titles`: trained on titles made of correct ones, reported on real extracted titles that people judged."""

from __future__ import annotations

from pathlib import Path

from fairtune.core.errors import DataError, one_of
from fairtune.core.files import sha256_of
from fairtune.tasks.definitions import TITLES
from fairtune.tasks.duplicates import without_duplicates
from fairtune.tasks.reading.files import file_identity
from fairtune.tasks.reading.rows import read_rows
from fairtune.tasks.splits import by_hash, make_splits
from fairtune.tasks.stores import MIRROR, mirror_file, mirror_folder
from fairtune.tasks.task import Task, prepared
from fairtune.tasks.titles.files import read_titles, write_made
from fairtune.tasks.titles.made_titles import MadeTitle, make_titles

NAME = TITLES.name
ROWS, SEED = 20_000, 0
_JUDGED = mirror_file(TITLES.data, "citeseerx")


def titles() -> Task:
    """Made titles train and select, the mirror's judged ones are reported; none that is reported is trained on."""
    if reason := missing():
        raise DataError(f"task '{NAME}': {reason}.")
    judged, *correct = _files()

    def make(aside: Path) -> Task:
        write_made(aside / "made.jsonl", made_titles())
        text, label = TITLES.text, TITLES.label
        rows = read_rows(aside / "made.jsonl", text, label, aside / "made.rows", "kind")
        parts = by_hash(rows, text, TITLES.shares)
        parts["test"] = read_rows(judged, text, label, aside / "judged.rows")
        _, splits = make_splits(parts, text, label, ["0", "1"], aside)
        sources = one_of(file.name.partition(".")[0] for file in correct)
        made = f"local mirror; {ROWS:,} titles made of {sources}, seed {SEED}"
        return Task(NAME, TITLES.metric, TITLES.labels, splits, f"{made}; reported on {TITLES.test}")

    held = [file_identity(file) for file in (judged, *correct)]
    makers = [sha256_of(file) for file in sorted(Path(__file__).parent.glob("*.py"))]  # others make other titles
    return without_duplicates(prepared([NAME, ROWS, SEED, TITLES.shares, held, makers], make))


def made_titles() -> list[MadeTitle]:
    """The titles that are made of the mirror's correct ones, each with its kind; row i of the split is the i-th of them."""
    return make_titles(read_titles(_files()[1:]), ROWS, SEED)


def missing() -> str:
    """What stands in the way of this task here."""
    if _files():
        return ""
    return (
        f"{MIRROR} names no folder with {_JUDGED} and at least one file of correct titles next to it; add them, or make a training "
        "set of your own titles with `fairtune data make-titles OUT --from FILE` and name its files under `task:`"
    )


def _files() -> list[Path]:
    """The mirror's judged titles, then its files of correct ones; nothing if it lacks either."""
    judged = (mirror_folder() or Path("/nowhere")) / _JUDGED
    correct = sorted(file for file in judged.parent.glob("*.jsonl.gz") if file != judged)
    return [judged, *correct] if correct and judged.is_file() else []
