"""The tasks of the catalogue, read from a mirror: which split selects, which is reported, and what is refused."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_mirror import make_everything, make_inference, make_sst2, make_task, sentences, write_split
from tests.warm import light_run

from fairtune.core.errors import DataError
from fairtune.tasks import load_task, task_names
from fairtune.tasks.definitions import DEFINITIONS, LANGUAGES, TEXTS, Definition


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mirror"
    folder.mkdir()
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(folder))
    return folder


def sizes(name: str) -> dict[str, int]:
    return load_task(name).facts().rows


BY_NAME = {task.name: task for task in DEFINITIONS}


def test_the_catalogue_has_the_published_tasks_in_every_language() -> None:
    assert len(LANGUAGES) == 15
    assert [name for name in task_names() if not name.startswith("xnli/")] == [
        *("movie-reviews", "sst2", "cola", "mrpc", "qnli", "qqp", "rte", "wnli"),
        *("mnli", "mnli/mismatched", "imdb", "ag_news", "titles"),
    ]
    assert [name for name in task_names() if name.startswith("xnli/")] == [
        *(f"xnli/{language}" for language in LANGUAGES),
        *(f"xnli/{language}/translate-train" for language in LANGUAGES if language != "en"),
    ]
    assert [text.name for text in TEXTS] == [
        *("tinystories", "openwebtext", "wikitext-103", "wikitext-2", "movie-reviews/text")
    ]


@pytest.mark.parametrize("task", [*DEFINITIONS, *TEXTS], ids=lambda task: task.name)
def test_every_definition_pins_a_commit_and_says_what_it_is(task: Definition) -> None:
    for data, split in task.places().values():
        assert re.fullmatch("[0-9a-f]{40}", data.revision) or data.package
        assert data.rows[split] > 0, "the published size of every split that is used"
    assert task.data.licence
    assert re.fullmatch(r"[A-Z].*\.", task.data.about)


def test_what_selects_is_never_what_is_reported(mirror: Path) -> None:
    """Of every task: the splits have nothing in common, each is recorded by its hash, and each has every class."""
    make_everything(mirror)
    for name in BY_NAME:
        task = load_task(name)
        texts = {role: set(split.texts) for role, split in task.splits.items()}
        for one, other in [*pairwise(texts), ("train", "test")]:
            assert not texts[one] & texts[other], f"{name}: {one} and {other}"
        hashes = task.facts().hashes
        assert len(set(hashes.values())) == 3
        assert all(re.fullmatch("[0-9a-f]{64}", found) for found in hashes.values())
        for split in task.splits.values():
            assert set(split.labels) == set(range(len(task.labels))), name


def test_a_labelled_test_split_is_reported(mirror: Path) -> None:
    make_sst2(mirror)
    task = load_task("sst2")
    assert task.facts().rows == {"train": 40, "validation": 21, "test": 16}
    assert task.source == (
        "local mirror; test split; 40 of the 67,349 published training rows; 21 of the 872 published validation rows; "
        "16 of the 1,821 published test rows"
    )
    assert (task.labels, task.metric) == (("negative", "positive"), "accuracy")
    assert task.splits["test"].texts[3] == ("test sentence 3",)
    assert task.splits["test"].labels[3] == 1


def test_a_test_split_whose_labels_are_secret_is_never_used(mirror: Path) -> None:
    make_sst2(mirror, secret=True)
    task = load_task("sst2")
    assert task.facts().rows == {"train": 40, "validation": 10, "test": 11}
    assert "halves of the validation split" in task.source
    texts = [{text for (text,) in task.splits[split].texts} for split in ("validation", "test")]
    assert not texts[0] & texts[1]
    assert texts[0] | texts[1] == {f"validation sentence {i}" for i in range(21)}


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ("train", "the train split must have them"),
        ("validation", "the validation split must have them"),
        ("test", "a test split has all its labels or none"),
    ],
)
def test_a_label_that_is_not_known_is_refused(mirror: Path, split: str, words: str) -> None:
    make_sst2(mirror)
    write_split(mirror, "sst2", split, sentences(split, 3, secret=True) + sentences("more", 13))
    with pytest.raises(DataError, match=f"task 'sst2': .*{split}.jsonl.gz: 3 of 16 rows have the label -1.*{words}"):
        load_task("sst2")


def test_a_task_without_a_test_split_is_reported_on_half_of_its_validation_split(mirror: Path) -> None:
    make_inference(mirror)
    task = load_task("mnli")
    assert task.facts().rows == {"train": 60, "validation": 15, "test": 17}
    assert task.source.startswith("local mirror; halves of the validation_matched split")
    assert task.labels == ("entailment", "neutral", "contradiction")


def test_the_halves_of_pairs_share_no_premise_and_keep_the_classes(mirror: Path) -> None:
    make_inference(mirror)
    generator = np.random.default_rng(0)
    rows = [
        {"premise": f"premise {i}", "hypothesis": f"{i} {j}", "label": int(generator.choice(3, p=(0.5, 0.3, 0.2)))}
        for i in range(400)
        for j in range(int(generator.integers(1, 5)))
    ]
    write_split(mirror, "mnli", "validation_matched", rows)
    halves = [load_task("mnli").splits[name] for name in ("validation", "test")]
    assert len(halves[0]) + len(halves[1]) == len(rows)
    assert not {premise for premise, _ in halves[0].texts} & {premise for premise, _ in halves[1].texts}
    counts = [np.bincount(half.labels) for half in halves]
    assert np.abs(counts[0] - counts[1]).max() <= 2


def test_another_language_is_trained_on_english_and_read_in_its_own(mirror: Path) -> None:
    make_inference(mirror)
    task = load_task("xnli/de")
    assert task.name == "xnli/de"
    assert task.facts().rows == {"train": 60, "validation": 24, "test": 30}
    assert task.splits["train"].texts[:] == load_task("mnli").splits["train"].texts[:]
    assert task.splits["test"].texts[4] == ("de test 1", "so 4")
    assert task.source.startswith(
        "local mirror; test split; trained on mnli; 60 of the 392,702 published training rows"
    )


@pytest.mark.parametrize("name", ["imdb", "ag_news"])
def test_data_without_a_validation_split_hold_one_out(mirror: Path, name: str) -> None:
    make_task(mirror, BY_NAME[name], rows=400)
    task = load_task(name)
    rows = task.facts().rows
    assert rows["test"] == 400
    assert rows["train"] + rows["validation"] == 400
    assert 5 <= rows["validation"] <= 40
    assert "validation is 5% of the training split" in task.source
    before = set(task.splits["validation"].texts)
    make_task(mirror, BY_NAME[name], rows=500)
    assert before <= set(load_task(name).splits["validation"].texts), "a text stays where its hash puts it"


@pytest.mark.parametrize(
    ("task", "missing"),
    [
        ("sst2", "sst2/validation.jsonl.gz"),
        ("xnli/de", "mnli/train.jsonl.gz"),
        ("xnli/de", "xnli/de/test.jsonl.gz"),
        ("imdb", "imdb/test.jsonl.gz"),
    ],
)
def test_a_missing_split_is_named(mirror: Path, task: str, missing: str) -> None:
    make_everything(mirror)
    (mirror / missing).unlink()
    with pytest.raises(DataError, match=f"task '{task}': the mirror .* lacks {missing}; .*unset FAIRTUNE_"):
        load_task(task)


@pytest.mark.parametrize("name", ["sst2", "mnli/mismatched", "xnli/de", "imdb"])
def test_every_task_without_mirror_and_hub_names_the_ways_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTUNE_MIRROR", "")
    monkeypatch.setattr("datasets.load_dataset", _no_network)
    with pytest.raises(DataError) as caught:
        load_task(name)
    text = str(caught.value)
    assert text.startswith(f"task '{name}': no data. FAIRTUNE_MIRROR is not set, and the hub did not give ")
    for data, split in BY_NAME[name].places().values():
        assert f"{data.folder}/{split}.jsonl.gz" in text
    for way in ("Either set FAIRTUNE_MIRROR", "unset HF_HUB_OFFLINE", "`train`, `text` and `label`"):
        assert way in text


def _no_network(*_: object, **__: object) -> None:
    raise ConnectionError("no network")


def test_a_mirror_that_is_no_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"FAIRTUNE_MIRROR .*nowhere.* is not a folder"):
        load_task("sst2")


def test_a_label_out_of_range_and_a_missing_column_are_reported(mirror: Path) -> None:
    make_sst2(mirror)
    write_split(mirror, "sst2", "validation", [{"sentence": "a", "label": 0}, {"sentence": "b", "label": 2}])
    with pytest.raises(DataError, match=r"validation.jsonl.gz: label '2' .*given: 0, 1"):
        load_task("sst2")
    write_split(mirror, "sst2", "validation", [{"text": "a", "label": 0}])
    with pytest.raises(DataError, match=r"validation.jsonl.gz: line 1: no column 'sentence'; columns: text, label"):
        load_task("sst2")


def test_reading_a_mirror_needs_neither_torch_nor_datasets(mirror: Path) -> None:
    make_sst2(mirror)
    code = "import sys, fairtune.tasks as t; t.load_task('sst2'); print({'torch', 'datasets'} & set(sys.modules))"
    assert light_run([sys.executable, "-c", code], text=True, check=True).stdout == "set()\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "sst-2",
            r"known: movie-reviews, sst2, cola, mrpc, qnli, qqp, rte, wnli, mnli, mnli/mismatched, xnli/<language>, "
            r"xnli/<language>/translate-train, imdb, ag_news, titles; text for language models: .*Did you mean 'sst2'\?",
        ),
        ("tinystory", "Did you mean 'tinystories'"),
        ("XNLI/de", "Did you mean 'xnli/de'"),
        ("xnli/xx", "Languages: ar, bg, de.*Did you mean 'xnli/"),
        ("xnli/de/translated", "Did you mean 'xnli/de/translate-train'"),
        ("squad", r"movie-reviews/text\. Languages: .* For your own data"),
    ],
)
def test_an_unknown_task_gets_a_short_list_and_the_nearest_name(name: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        load_task(name)


@pytest.mark.parametrize(
    ("name", "task"), [("tinystories", "tinystories"), ("files", {"kind": "language_model", "train": "notes.txt"})]
)
def test_text_for_language_models_cannot_be_classified(name: str, task: Any) -> None:
    with pytest.raises(
        DataError, match=f"'{name}' is text for language models.*Tasks that classify: movie-reviews, sst2"
    ):
        load_task(task)
