"""`fairtune data make-titles`: the file it writes, what it says, and what it refuses."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.tasks.test_titles_making import correct_titles
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.settings.file_task import FileTask
from fairtune.tasks import load_task
from fairtune.tasks.titles import KINDS


def call(*words: object) -> Any:
    return CliRunner().invoke(app, ["data", "make-titles", *map(str, words)], env={"COLUMNS": "120"})


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def titles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("titles") / "titles.txt"
    file.write_text("\n".join(correct_titles(700)), encoding="utf-8")
    return file


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "jsonl.gz"])
def test_every_format_is_a_task_and_the_same_bytes_each_time(tmp_path: Path, titles: Path, suffix: str) -> None:
    files = [tmp_path / f"{name}.{suffix}" for name in ("a", "b")]
    for file in files:
        answer = call(file, "--from", titles, "--rows", 400, "--seed", 2)
        assert answer.exit_code == 0, answer.output
    assert files[0].read_bytes() == files[1].read_bytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [file.name for file in files], "nothing is left behind"
    task = load_task(FileTask(name="titles", train=str(files[0]), text="title", label="label"))
    assert sum(task.facts().rows.values()) == 400
    assert task.labels == ("0", "1")


def test_the_answer_shows_every_kind_with_an_example(tmp_path: Path, titles: Path) -> None:
    answer = call(tmp_path / "made.jsonl", "--from", titles)
    rows = [json.loads(line) for line in (tmp_path / "made.jsonl").read_text().splitlines()]
    assert list(rows[0]) == ["title", "label", "kind", "original"]
    counts = Counter(row["kind"] for row in rows)
    for name in ("correct", *KINDS):
        assert f"{name} {counts[name]}" in squeezed(answer.output)
    assert f"made.jsonl: {len(rows)} rows, from 700 titles, seed 0" in squeezed(answer.output)


def test_json(tmp_path: Path, titles: Path) -> None:
    answer = call(tmp_path / "made.jsonl.gz", "--from", titles, "--rows", 200, "--weight", "garbled=0", "--json")
    facts = json.loads(answer.output)
    assert (facts["titles"], facts["rows"], facts["seed"]) == (700, 200, 0)
    assert facts["kinds"]["correct"] == 100 == sum(facts["kinds"].values()) - 100
    assert facts["kinds"]["garbled"] == 0
    assert gzip.decompress((tmp_path / "made.jsonl.gz").read_bytes()).startswith(b'{"title": ')


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path, titles: Path) -> None:
    out = tmp_path / "made.csv"
    out.write_text("precious")
    answer = call(out, "--from", titles)
    assert answer.exit_code == 2
    assert "the file exists; choose another name, or add --force" in squeezed(answer.output)
    assert out.read_text() == "precious"
    assert call(out, "--from", titles, "--force").exit_code == 0
    assert out.read_text().startswith("title,label")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["made.xlsx"], "made.xlsx: unknown format '.xlsx'; name the file with one of .csv, .jsonl, .jsonl.gz"),
        (["made"], "made: unknown format 'made'"),
        (["nowhere/made.csv"], "nowhere/made.csv: cannot be written: No such file or directory"),
        (["made.csv", "--weight", "fragment"], "--weight fragment: write KIND=NUMBER, such as"),
        (["made.csv", "--weight", "fragment=many"], "--weight fragment=many: write KIND=NUMBER"),
        (["made.csv", "--rows", "100000"], "700 usable titles allow"),
        (["made.csv", "--from", "missing.bib"], "missing.bib: there is no such file"),
    ],
)
def test_mistakes_are_reported_and_nothing_is_written(
    tmp_path: Path, titles: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = call(*words, "--from", titles)
    assert answer.exit_code == 2
    assert message in squeezed(answer.output)
    assert not list(tmp_path.iterdir())


def test_titles_are_not_overwritten_by_what_is_made_of_them(tmp_path: Path) -> None:
    file = tmp_path / "titles.csv"
    file.write_text("\n".join(["title", *correct_titles(100)]))
    answer = call(file, "--from", file, "--force")
    assert answer.exit_code == 2
    assert "the titles come from this file" in squeezed(answer.output)
