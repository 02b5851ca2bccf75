"""The tasks of the catalogue, read from a mirror: which split selects, which is reported, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_mirror import make_inference, make_sst2, pairs, sentences, write_split

from fairtune.errors import DataError
from fairtune.tasks import load_task, task_names
from fairtune.tasks.definitions import DEFINITIONS, LANGUAGES, SST2, Definition
from fairtune.tasks.published import load_published


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mirror"
    folder.mkdir()
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(folder))
    return folder


def sizes(name: str) -> dict[str, int]:
    return load_task(name).facts().rows


def test_the_catalogue_has_the_published_tasks_in_every_language() -> None:
    assert len(LANGUAGES) == 15
    assert task_names() == ["movie-reviews", "sst2", "mnli", *(f"xnli/{language}" for language in LANGUAGES)]


@pytest.mark.parametrize("task", DEFINITIONS, ids=lambda task: task.name)
def test_every_definition_pins_a_commit_of_the_hub(task: Definition) -> None:
    assert len(task.data.revision) == 40
    assert set(task.data.revision) <= set("0123456789abcdef")


def test_a_labelled_test_split_is_reported(mirror: Path) -> None:
    make_sst2(mirror)
    task = load_task("sst2")
    assert task.facts().rows == {"train": 40, "validation": 21, "test": 16}
    assert task.source == "local mirror; test split; 40 of the 67,349 published training rows"
    assert (task.labels, task.metric) == (("negative", "positive"), "accuracy")
    assert task.splits["test"].texts[3] == ("test sentence 3",)
    assert task.splits["test"].labels[3] == 1


@pytest.mark.parametrize("secret", [16, 1])
def test_a_test_split_with_any_secret_label_is_never_used(mirror: Path, secret: int) -> None:
    make_sst2(mirror)
    write_split(mirror, "sst2", "test", sentences("test", secret, secret=True) + sentences("more", 16 - secret))
    task = load_task("sst2")
    assert task.facts().rows == {"train": 40, "validation": 10, "test": 11}
    assert "halves of the validation split" in task.source
    texts = [{text for (text,) in task.splits[split].texts} for split in ("validation", "test")]
    assert not texts[0] & texts[1]
    assert texts[0] | texts[1] == {f"validation sentence {i}" for i in range(21)}


def test_a_task_without_a_test_split_is_reported_on_half_of_its_validation_split(mirror: Path) -> None:
    make_inference(mirror)
    task = load_task("mnli")
    assert task.facts().rows == {"train": 60, "validation": 16, "test": 16}
    assert task.source.startswith("local mirror; halves of the validation_matched split")
    assert task.labels == ("entailment", "neutral", "contradiction")


def test_the_halves_are_the_same_whatever_the_order_of_the_file(mirror: Path) -> None:
    make_inference(mirror)
    before = load_task("mnli")
    write_split(mirror, "mnli", "validation_matched", pairs("validation", 32)[::-1])
    after = load_task("mnli")
    for split in ("validation", "test"):
        assert set(before.splits[split].texts) == set(after.splits[split].texts)


def test_another_language_is_trained_on_english_and_read_in_its_own(mirror: Path) -> None:
    make_inference(mirror)
    task = load_task("xnli/de")
    assert task.name == "xnli/de"
    assert task.facts().rows == {"train": 60, "validation": 24, "test": 30}
    assert task.splits["train"].texts[:] == load_task("mnli").splits["train"].texts[:]
    assert task.splits["test"].texts[4] == ("de test 1", "so 4")
    assert task.source == ("local mirror; test split; trained on mnli; 60 of the 392,702 published training rows")


def test_data_without_a_validation_split_hold_one_out(mirror: Path) -> None:
    write_split(mirror, "sst2", "train", sentences("train", 400))
    write_split(mirror, "sst2", "test", sentences("test", 16))
    task = load_published(Definition(SST2, ("sentence",), ("negative", "positive"), validation=None))
    rows = task.facts().rows
    assert rows["test"] == 16
    assert rows["train"] + rows["validation"] == 400
    assert 5 <= rows["validation"] <= 40
    assert "validation is 5% of the training split" in task.source


def test_a_whole_training_split_is_not_called_a_part(mirror: Path) -> None:
    make_sst2(mirror)
    whole = Definition(replace(SST2, train_rows=40), ("sentence",), ("negative", "positive"))
    assert load_published(whole).source == "local mirror; test split"


@pytest.mark.parametrize(
    ("task", "missing"),
    [
        ("sst2", "sst2/validation.jsonl.gz"),
        ("sst2", "sst2/test.jsonl.gz"),
        ("mnli", "mnli/train.jsonl.gz"),
        ("xnli/de", "mnli/train.jsonl.gz"),
        ("xnli/de", "xnli/de/test.jsonl.gz"),
    ],
)
def test_a_missing_split_is_named(mirror: Path, task: str, missing: str) -> None:
    make_inference(make_sst2(mirror))
    (mirror / missing).unlink()
    with pytest.raises(DataError, match=f"task '{task}': the mirror lacks {missing}.*in that folder:.*unset FAIRTUNE_"):
        load_task(task)


def test_a_mirror_without_the_task_and_no_hub_tells_every_way_out(mirror: Path) -> None:
    make_sst2(mirror)
    with pytest.raises(DataError) as caught:
        load_task("xnli/de")
    text = str(caught.value)
    assert text.startswith(f"task 'xnli/de': no data. FAIRTUNE_MIRROR is {mirror}, which has no folder xnli/de")
    assert "the hub did not give nyu-mll/glue (mnli) at bcdcba79" in text
    assert "mnli/train.jsonl.gz, xnli/de/validation.jsonl.gz, xnli/de/test.jsonl.gz" in text
    assert "unset HF_HUB_OFFLINE" in text
    assert "`train`, `text` and `label`" in text
    assert "\n" not in text


def test_no_mirror_and_no_hub_says_that_the_mirror_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRTUNE_MIRROR", raising=False)
    with pytest.raises(DataError, match="FAIRTUNE_MIRROR is not set, and the hub did not give"):
        load_task("sst2")


def test_a_mirror_that_is_no_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"FAIRTUNE_MIRROR: .*nowhere is not a folder; name one with sst2/train"):
        load_task("sst2")


def test_a_label_out_of_range_and_a_missing_column_are_told(mirror: Path) -> None:
    make_sst2(mirror)
    write_split(mirror, "sst2", "validation", [{"sentence": "a", "label": 0}, {"sentence": "b", "label": 2}])
    with pytest.raises(DataError, match=r"validation.jsonl.gz: label '2' occurs 1 times.*labels given: 0, 1"):
        load_task("sst2")
    write_split(mirror, "sst2", "validation", [{"text": "a", "label": 0}])
    with pytest.raises(DataError, match=r"validation.jsonl.gz: line 1: no column 'sentence'; columns: text, label"):
        load_task("sst2")


def test_an_empty_text_of_published_data_stays(mirror: Path) -> None:
    make_sst2(mirror)
    write_split(mirror, "sst2", "train", [*sentences("train", 40), {"sentence": "", "label": 1}])
    assert sizes("sst2")["train"] == 41


@pytest.mark.parametrize("name", ["sst2", "mnli", "xnli/de"])
def test_reading_a_mirror_needs_neither_torch_nor_datasets(mirror: Path, name: str) -> None:
    make_inference(make_sst2(mirror))
    code = f"import sys, fairtune.tasks as t; t.load_task({name!r}); print({{'torch', 'datasets'}} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sst-2", r"known: movie-reviews, sst2, mnli, xnli/<language>\. Did you mean 'sst2'\?"),
        ("SST2", "Did you mean 'sst2'"),
        ("XNLI/de", "Did you mean 'xnli/de'"),
        ("xnl/fr", "Did you mean 'xnli/fr'"),
        ("xnli", "'xnli' needs a language; write `xnli/<language>` with one of ar, bg, de"),
        ("xnli/xx", "'xnli' has no such language; write `xnli/<language>` with one of ar, bg, de"),
        ("squad", r"known: .*xnli/<language>\. For your own data"),
    ],
)
def test_an_unknown_task_gets_a_short_list_and_the_nearest_name(name: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        load_task(name)
