"""Tasks whose data is in an installed package."""

from __future__ import annotations

from pathlib import Path

from fairtune.tasks.definitions import MOVIE_REVIEWS
from fairtune.tasks.reading.shards import file_identity, package_file, read_rows
from fairtune.tasks.splits import Column, by_hash, make_split
from fairtune.tasks.task import Task
from fairtune.tasks.task_cache import prepared

MOVIE_COLUMN = Column(("text",), "label", {"0": 0, "1": 1}, ("negative", "positive"))
MOVIE_SHARES = {"validation": 0.05, "test": 0.15}


def movie_reviews() -> Task:
    """Rotten Tomatoes sentences of the installed package, split 80/5/15 by a hash of the text."""
    data = MOVIE_REVIEWS
    file = package_file(data.package, data.inside, data.folder)

    def make(aside: Path) -> Task:
        rows = read_rows(file, ["text", data.only[0]], "label", aside / "rows").where_equal(*data.only)
        parts = by_hash(rows, MOVIE_COLUMN.text, MOVIE_SHARES)
        splits = {name: make_split(part, MOVIE_COLUMN, name, aside) for name, part in parts.items()}
        return Task(data.folder, "accuracy", MOVIE_COLUMN.names, splits, f"{data} (Rotten Tomatoes sentences)")

    return prepared([data.folder, file_identity(file)], make)
