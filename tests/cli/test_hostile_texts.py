"""Codes and marks in file names, columns, labels and texts go through the verbs and are obeyed by none."""

from __future__ import annotations

import csv
import json
import shutil
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt
from tests.classifier.made_examples import make_model, make_texts
from tests.hostile import ALL, CODES, NAME, on_a_terminal, raw_codes
from tests.made_maps import made_run
from typer.testing import CliRunner

from fairtune import TextClassifier
from fairtune.cli.app import app
from fairtune.core.grid import Grid
from fairtune.report.sections.maps import run_page
from fairtune.report.sections.maps.pictures import pictures

LABELS = (f"one {ALL}", f"two {ALL}")
TEXT, LABEL = f"text{NAME}", f"label{NAME}"


def call(*words: object, stdin: str | None = None) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words], input=stdin)


def table(file: Path, count: int, seed: int = 1) -> Path:
    texts, labels = make_texts(count, seed)
    rows = [(f"{text} {ALL}", LABELS[label == "pos"]) for text, label in zip(texts, labels, strict=True)]
    with file.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([(TEXT, LABEL), *rows])
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    make_model(made / NAME)
    for seed, split in enumerate(("train", "validation", "test")):
        table(made / f"{split}{NAME}.csv", 40, seed)
    return made


@pytest.fixture(scope="module")
def trained(folder: Path) -> tuple[Path, Any]:
    """A classifier of hostile labels, and what was said when it was trained."""
    out = folder / f"out{NAME}"
    said = call(
        "train", folder / f"train{NAME}.csv", "--model", folder / NAME, "--text", TEXT, "--label", LABEL, "-o", out,
        "--test", folder / f"test{NAME}.csv", "--epochs", 1, "--batch-size", 8, "--device", "cpu",
    )  # fmt: skip
    return out, said


def study(folder: Path, **changes: Any) -> Path:
    files = {split: str(folder / f"{split}{NAME}.csv") for split in ("train", "validation", "test")}
    task = {"name": "mine", **files, "text": TEXT, "label": LABEL}
    source = {"study": "s", "task": task, "model": str(folder / NAME), "arms": {"baseline": {}}, "seeds": 1}
    file = folder / f"study{NAME}.yaml"
    file.write_text(yaml.safe_dump({**source, **changes}), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "words",
    [
        ["validate"],
        ["plan"],
        ["plan", "--json"],
        ["plan", "--set", f"model={NAME}"],
        ["plan", "--set", f"task.text={NAME}"],
        ["plan", "--profile", NAME],
    ],
)
def test_a_study_is_described_as_it_is(words: list[str], folder: Path) -> None:
    done = call(words[0], study(folder), *words[1:])
    assert "\\x1b[2J" in done.output or "\\u001b[2J" in done.output
    assert done.exit_code in (0, 2)
    assert "Traceback" not in done.output
    assert raw_codes(done.output) == []


def test_what_is_wrong_with_a_study_is_reported_as_it_is(folder: Path) -> None:
    file = study(folder, **{ALL: 1, "arms": {ALL: {}}, "train": {"lr": ALL}})
    for words in (["validate", file], ["validate", file, "--json"]):
        done = call(*words)
        assert done.exit_code == 2
        assert r"\x1b[2J" in done.stderr
        assert raw_codes(done.output) == []


@pytest.mark.parametrize(
    "words",
    [
        ["methods", ALL], ["tasks", ALL], ["inspect", NAME], ["inspect", NAME, "--method", ALL], ["status", "--runs", NAME],
        ["report", NAME], ["som", NAME], ["export", NAME, NAME], ["data", "card", ALL],
        ["data", "card", f"{{train: {NAME}.csv}}"], ["data", "lengths", NAME, "--model", NAME], ["predict", NAME, NAME],
        ["train", NAME, "-o", NAME], ["train", NAME, "-o", NAME, "--set", NAME], ["run", NAME], ["validate", f"--{NAME}"], [NAME],
        ["watch", NAME], ["watch", "--runs", NAME], ["dash", NAME], ["dash", "--host", NAME],
        ["data", NAME], ["validate", "a", NAME], ["predict", NAME, "-", "--format", ALL], ["predict", NAME, "--device", ALL],
    ],
)  # fmt: skip
def test_words_that_are_wrong_are_reported_as_they_are(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(*words, stdin="")
    assert "Traceback" not in done.output
    assert done.exit_code in (0, 2), done.output
    assert raw_codes(done.output) == []
    assert done.output.strip()


def test_a_data_card_shows_texts_and_labels(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(ALL, LABELS[0]), (ALL, LABELS[1])]
    for split in ("a", "b"):
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as handle:
            csv.writer(handle).writerows([("text", "label"), *rows, ("other", LABELS[0]), ("more", LABELS[1])])
    words = ["data", "card", f"{{train: '{folder}/a.csv', validation: '{folder}/b.csv', test: '{folder}/b.csv'}}"]
    done = call(*words)
    assert done.exit_code == 0, done.output
    assert raw_codes(done.output) == []
    assert r"\x1b[2J" in done.output
    assert raw_codes(on_a_terminal(words, monkeypatch)) == []
    machine = call(*words, "--json")
    assert raw_codes(machine.output) == []
    assert set(json.loads(machine.stdout)["splits"]["train"]["classes"]) == set(LABELS)


def test_inspect_shows_a_model_as_it_is_called(folder: Path) -> None:
    done = call("inspect", folder / NAME)
    assert done.exit_code == 0, done.output
    assert raw_codes(done.output) == []


def test_train_tells_of_labels_and_columns(trained: tuple[Path, Any]) -> None:
    place, said = trained
    assert said.exit_code == 0, said.output
    assert raw_codes(said.output) == []
    assert r"one \x1b[2J" in said.stdout
    loaded = TextClassifier.load(place)
    assert sorted(loaded.classes_) == sorted(LABELS), "data stay as they are"


def test_the_model_card_is_a_card_whatever_labels_say(trained: tuple[Path, Any]) -> None:
    card = (trained[0] / "README.md").read_text(encoding="utf-8")
    assert raw_codes(card) == []
    front, _, body = card.removeprefix("---\n").partition("\n---\n")
    assert set(yaml.safe_load(front)) <= {"library_name", "pipeline_tag", "tags", "base_model", "metrics"}
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    inline = [child for token in tokens for child in token.children or ()]
    assert not {token.type for token in (*tokens, *inline)} & {"html_inline", "html_block", "link_open", "image"}
    heads = [
        tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h2"
    ]
    assert heads == ["Use", "Data", "Training", "Validation", "Test", "Baselines", "Probabilities", "Limits", "Origin"]
    assert "one \\x1b[2J" in "".join(token.content for token in inline if token.type.startswith("text"))


def test_mistakes_are_printed_as_they_are(trained: tuple[Path, Any]) -> None:
    classifier = TextClassifier.load(trained[0])
    found = classifier.errors([f"{ALL} film", "a film"], [LABELS[0], LABELS[1]])
    for text in (repr(found), str(found), found._repr_html_(), repr(classifier)):
        assert raw_codes(text) == []
    assert "<img" not in found._repr_html_()


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_predict_shows_no_code_on_a_terminal_and_keeps_data_in_a_pipe(
    kind: str, trained: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / f"rows.{kind}"
    values = [code for code in CODES.values() if kind == "jsonl" or not {"\r", "\0"} & set(code)]
    with file.open("w", newline="", encoding="utf-8") as handle:
        if kind == "jsonl":
            handle.writelines(json.dumps({TEXT: value, LABEL: ALL}, ensure_ascii=False) + "\n" for value in values)
        else:
            writer = csv.writer(handle, delimiter={"csv": ",", "tsv": "\t"}[kind])
            writer.writerows([(TEXT, LABEL), *((value, LABELS[0]) for value in values)])
    words = ["predict", trained[0], file, "--text", TEXT, "--label", LABEL]
    shown = on_a_terminal(words, monkeypatch)
    assert raw_codes(shown) == []
    assert (r"\x1b" if kind != "jsonl" else r"\u001b") in shown
    piped = call(*words)
    assert piped.exit_code == 0, piped.output
    assert raw_codes(piped.stderr) == []
    data = piped.stdout_bytes.decode("utf-8")
    if kind == "jsonl":
        assert [json.loads(line)[TEXT] for line in data.split("\n") if line] == values
    else:
        assert all(value in data for value in values)
    machine = call(*words, "-o", tmp_path / f"out.{kind}", "--json")
    assert raw_codes(machine.output) == []
    assert json.loads(machine.stdout)["label"] == LABEL


def test_maps_show_arms_and_classes_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_run(tmp_path, NAME, classes=LABELS, passes=1, units=2, removed=(), grid=Grid(2, 2))
    monkeypatch.setattr(run_page, "pictures", lambda *given: islice(pictures(*given), 2))  # the others take long
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Glyph")
        done = call("som", f"made/{NAME}/seed-0", "--runs", tmp_path, "-o", tmp_path / "maps")
    assert done.exit_code == 0, done.output
    assert raw_codes(done.output) == []
    page = (tmp_path / "maps" / "index.html").read_text(encoding="utf-8")
    assert raw_codes(page) == []
    assert r"a\x1b[2J" in page


def test_lengths_of_a_hostile_model_are_drawn(folder: Path, tmp_path: Path) -> None:
    from xml.etree import ElementTree

    spec = yaml.safe_dump(
        {"train": str(folder / f"train{NAME}.csv"), "text": TEXT, "label": LABEL}, default_flow_style=True, width=10_000
    )
    shutil.copytree(folder / NAME, tmp_path / "$x^$\x1b[2J")
    done = call("data", "lengths", spec, "--model", tmp_path / "$x^$\x1b[2J", "-o", tmp_path / "a.svg")
    assert done.exit_code == 0, done.output
    assert raw_codes(done.output) == []
    drawn = ElementTree.parse(tmp_path / "a.svg")  # a code would be no XML
    assert any(r"$x^$\x1b[2J" in (text.text or "") for text in drawn.iter())
