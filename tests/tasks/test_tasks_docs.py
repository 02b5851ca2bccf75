"""The page on tasks says what the catalogue has."""

from __future__ import annotations

import pytest
import yaml
from tests.documented import DOCS, examples, run_python

from fairtune.settings.file_task import FileTask
from fairtune.tasks import corpora, load_task
from fairtune.tasks.definitions import CATALOGUE, LANGUAGES, TEXTS, family_of
from fairtune.tasks.descriptions import Description, descriptions
from fairtune.tasks.registry import _registered

PAGE = (DOCS / "tasks.md").read_text(encoding="utf-8")


def row(task: Description) -> str:
    """A task as a row of the page's table."""
    name = family_of(task.name)
    addresses = dict.fromkeys(address.partition(",")[0] for address in task.address)
    hub = " and ".join(addresses) or f"none: {'made' if task.name == 'titles' else 'a package'}"
    cells = [
        f"`{name}`",
        task.kind,
        ", ".join(task.columns),
        ", ".join(task.labels),
        task.metric,
        *(str(task.uses[role]) for role in ("train", "validation", "test")),
        hub,
        task.licence,
    ]
    return "| " + " | ".join(cells) + " |"


def test_the_table_is_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRTUNE_MIRROR", raising=False)
    wanted = dict.fromkeys(map(row, descriptions()))
    found = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert found == list(wanted)


def test_the_languages_and_shares_are_those_of_the_code() -> None:
    assert ", ".join(LANGUAGES) in PAGE
    assert f"{CATALOGUE['imdb'].validation:.0%} of the training split" in PAGE
    assert f"{TEXTS[1].validation:.0%} of the first {corpora.HEAD:,} rows" in PAGE
    shares = CATALOGUE["movie-reviews"].shares
    assert f"{1 - sum(shares.values()):.0%} / {shares['validation']:.0%} / {shares['test']:.0%}" in PAGE


def test_the_example_of_own_files_is_one() -> None:
    task = FileTask.model_validate(yaml.safe_load(examples("tasks.md", "yaml")["Your own files"])["task"])
    assert task.text == ("subject", "body")
    assert FileTask.model_validate({"kind": "language_model", "train": "notes.txt"}).text == ("text",)


def test_the_example_of_a_task_of_ones_own_is_one() -> None:
    run_python(examples("tasks.md", "python")["Adding a task"], {}, "tasks.md")
    try:
        task = load_task("support-tickets")
        assert (task.labels, task.metric) == (("billing", "delivery"), "macro_f1")
        assert sum(map(len, task.splits.values())) == 100
    finally:
        del _registered["support-tickets"]
