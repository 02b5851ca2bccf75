"""Kinds of examples go with a task's data, and change nothing of what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.tasks.test_title_task import mirror  # noqa: F401

from fairtune.core.errors import DataError
from fairtune.tasks import load_task
from fairtune.tasks.titles.task import made_titles


def rows(kinds: list[Any], words: str) -> list[dict[str, Any]]:
    return [{"text": f"{words} {i}", "label": i % 2, "sort": kind} for i, kind in enumerate(kinds)]


def write(file: Path, found: list[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in found))
    return str(file)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    plain = [{"text": f"train {i}", "label": i % 2} for i in range(20)]
    return {
        "train": write(tmp_path / "train.jsonl", plain),
        "validation": write(tmp_path / "validation.jsonl", rows(["a"] * 6, "chosen")),
        "test": write(tmp_path / "test.jsonl", rows(["long", 7, None, "", "long", 7.0], "reported")),
    }


def test_kinds_of_a_column_are_kept_as_texts_and_need_not_be_there(files: dict[str, str]) -> None:
    task = load_task({**files, "kinds": "sort"})
    assert task.splits["test"].kinds == ("long", "7", None, None, "long", "7")
    assert task.splits["validation"].kinds == ("a",) * 6
    assert task.splits["train"].kinds is None, "what is only trained on needs no such column"


def test_kinds_change_neither_identity_nor_fingerprint(files: dict[str, str]) -> None:
    plain, with_kinds = load_task(files), load_task({**files, "kinds": "sort"})
    assert plain.fingerprint == with_kinds.fingerprint
    assert plain.facts().hashes == with_kinds.facts().hashes
    assert plain.kinds is None
    assert with_kinds.kinds is not None


def test_other_kinds_of_the_same_texts_are_found_after_taking_out_duplicates(files: dict[str, str]) -> None:
    first = load_task({**files, "kinds": "sort"}, dedupe=True)
    write(Path(files["test"]), rows(["new"] * 6, "reported"))
    again = load_task({**files, "kinds": "sort"}, dedupe=True)
    assert again.fingerprint == first.fingerprint
    assert again.splits["test"].kinds == ("new",) * 6


def test_held_out_splits_take_their_kinds_along(tmp_path: Path) -> None:
    file = write(tmp_path / "all.jsonl", rows([f"k{i % 3}" for i in range(60)], "word"))
    task = load_task({"train": file, "kinds": "sort"})
    for split in task.splits.values():
        assert split.kinds == tuple(f"k{int(text.split()[1]) % 3}" for (text,) in split.texts)


def test_a_file_without_the_column_is_a_clear_error(files: dict[str, str]) -> None:
    with pytest.raises(
        DataError, match=r"kinds: no column 'sorts' in validation\.jsonl, test\.jsonl; at least one file"
    ):
        load_task({**files, "kinds": "sorts"})
    plain = [{"text": f"t {i}", "label": i % 2} for i in range(4)]
    write(Path(files["test"]), plain)
    task = load_task({**files, "kinds": "sort"})
    assert task.splits["test"].kinds is None, "made examples may have kinds and real ones not"
    assert task.splits["validation"].kinds is not None
    write(Path(files["test"]), [{**plain[0], "sort": "a"}, *plain[1:]])
    with pytest.raises(DataError, match=r"test\.jsonl: line 2: no column 'sort'"):
        load_task({**files, "kinds": "sort"})


@pytest.mark.usefixtures("mirror")
def test_made_titles_have_the_kind_they_were_made_by_and_judged_ones_none() -> None:
    task, kinds = load_task("titles"), {row.title: row.kind for row in made_titles()}
    validation = task.splits["validation"]
    assert validation.kinds == tuple(kinds[text] for (text,) in validation.texts)
    assert task.splits["test"].kinds is None
