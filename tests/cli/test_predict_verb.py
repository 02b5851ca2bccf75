"""`fairtune predict`: answers beside rows, from files and pipes, and clear words where that cannot be."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.warm import WarmPopen
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.testing.toy import VOCABULARY, make_tokenizer

ROWS = [("1", "a good film", "pos"), ("2", "", "neg"), ("3", "the worst plot of all", "odd"), ("4", "dull", "")]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier as plain transformers saves it."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("plain") / "model"
    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=64, id2label={0: "neg", 1: "pos"}, label2id={"neg": 0, "pos": 1},
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertForSequenceClassification(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier as fairtune saves it, of titles (column `title`) and their kinds (column `kind`)."""
    import pandas as pd
    from tests.classifier.made_examples import make_model, make_texts, quick

    folder = tmp_path_factory.mktemp("saved")
    texts, labels = make_texts(40)
    classifier = quick(make_model(folder / "base"))
    classifier.fit(pd.DataFrame({"title": texts}), pd.Series(labels, name="kind"))
    return Path(classifier.save(folder / "classifier"))


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "rows.csv"
    with file.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([("id", "text", "label"), *ROWS])
    return file


def call(*words: object, stdin: str | None = None) -> Any:
    return CliRunner().invoke(app, ["predict", *(str(word) for word in words)], input=stdin)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def pipeline_of(folder: Path, texts: list[str]) -> list[tuple[str, float]]:
    from transformers import pipeline

    found = pipeline("text-classification", model=str(folder), device=-1)(texts)
    return [(one["label"], one["score"]) for one in found]


def test_answers_stand_beside_the_rows_and_are_those_of_plain_transformers(
    plain: Path, rows: Path, tmp_path: Path
) -> None:
    done = call(plain, rows, "-o", tmp_path / "out.jsonl", "--probabilities")
    assert done.exit_code == 0, done.output
    found = lines((tmp_path / "out.jsonl").read_text(encoding="utf-8"))
    assert [(row["id"], row["text"], row["label"]) for row in found] == ROWS
    assert [set(row) - {"id", "text", "label"} for row in found] == [
        {"predicted", "confidence", "probability_neg", "probability_pos"}
    ] * 4
    for row, (label, score) in zip(found, pipeline_of(plain, [text for _, text, _ in ROWS]), strict=True):
        assert row["predicted"] == label
        assert row["confidence"] == pytest.approx(score, abs=1e-5) == row[f"probability_{label}"]


def test_says_how_fast_it_was_and_how_good_where_labels_are_there(plain: Path, rows: Path, tmp_path: Path) -> None:
    done = call(plain, rows, "-o", tmp_path / "out.csv", "--label", "label")
    assert done.stdout == ""
    assert "4 rows in" in done.stderr
    assert "per second on cpu" in done.stderr
    assert "against 'label': accuracy " in done.stderr
    assert "(95 %, n = 2)" in done.stderr
    assert "1 rows with labels that the model has no class for (odd)" in done.stderr
    assert "1 rows without a label" in done.stderr


def test_json_tells_the_same(plain: Path, rows: Path, tmp_path: Path) -> None:
    done = call(plain, rows, "-o", tmp_path / "out.csv", "--label", "label", "--json")
    answer = json.loads(done.stdout)
    assert answer["rows"] == 4
    assert {figure["metric"]: figure["n"] for figure in answer["figures"]}["accuracy"] == 2
    assert answer["unknown_labels"] == {"odd": 1}


def test_a_saved_classifier_knows_its_columns_and_scores_its_labels(saved: Path, tmp_path: Path) -> None:
    file = tmp_path / "more.jsonl"
    file.write_text('{"n": 1, "title": "a good film", "kind": "pos"}\n', encoding="utf-8")
    done = call(saved, file)
    assert done.exit_code == 0, done.output
    assert lines(done.stdout)[0]["n"] == 1
    assert "against 'kind': accuracy" in done.stderr
    piped = call(saved, stdin="a good film\n")
    assert lines(piped.stdout)[0]["predicted"] == lines(done.stdout)[0]["predicted"]


def test_standard_output_has_the_format_of_the_input(plain: Path, rows: Path) -> None:
    assert call(plain, rows).stdout.splitlines()[0] == "id,text,label,predicted,confidence"
    assert lines(call(plain, stdin='{"text": "dull", "n": [1]}\n').stdout)[0]["n"] == [1]
    assert [row["text"] for row in lines(call(plain, "-", stdin="one\n\ntwo\n").stdout)] == ["one", "", "two"]


def test_pairs_are_scored_as_pairs(plain: Path, tmp_path: Path) -> None:
    from transformers import pipeline

    file = tmp_path / "pairs.jsonl"
    file.write_text('{"one": "a good film", "two": "the worst plot"}\n', encoding="utf-8")
    found = lines(call(plain, file, "--text", "one", "--pair", "two").stdout)[0]
    expected = pipeline("text-classification", model=str(plain), device=-1)(
        {"text": "a good film", "text_pair": "the worst plot"}
    )
    assert found["confidence"] == pytest.approx(expected["score"], abs=1e-5)


def test_answers_never_replace_a_column(plain: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "a good film", "predicted": "mine"}\n', encoding="utf-8")
    refused = call(plain, file)
    assert refused.exit_code == 2
    assert "has a column 'predicted' already" in refused.stderr
    found = lines(call(plain, file, "--prefix", "bert_").stdout)[0]
    assert found["predicted"] == "mine"
    assert found["bert_predicted"] in ("neg", "pos")


FORMULAS = [
    "=1+1", "+1", "-0.5", "@SUM(A1)", "=cmd|' /C calc'!A0", "\t=1", "\tx", "  =1", "\ufeff=1", "＝1", "'=1", "''+1", "-",
    '=HYPERLINK("x","y")',
]  # fmt: skip
HARMLESS = ["a good film", "", "1 + 1 = 2", "it's", "'quoted'", "a=b", "5", "(−1)", "#1", " x"]


@pytest.mark.parametrize("kind", ["csv", "tsv"])
@pytest.mark.parametrize("like", ["csv", "jsonl"])
def test_safe_csv_guards_what_a_spreadsheet_would_compute(plain: Path, tmp_path: Path, kind: str, like: str) -> None:
    texts = [*FORMULAS, *HARMLESS]
    file, safe, usual = tmp_path / f"rows.{like}", tmp_path / f"safe.{kind}", tmp_path / f"usual.{kind}"
    with file.open("w", newline="", encoding="utf-8") as handle:
        if like == "jsonl":
            handle.writelines(json.dumps({"text": text, "=a": -1.5}) + "\n" for text in texts)
        else:
            csv.writer(handle).writerows([("text", "=a"), *((text, "-1.5") for text in texts)])
    for out, words in ((safe, ["--safe-csv"]), (usual, [])):
        done = call(plain, file, "--text", "text", "-o", out, "--probabilities", "--prefix", "@", *words)
        assert done.exit_code == 0, done.output
    guarded, as_they_are = (table_of(out, kind) for out in (safe, usual))
    assert [row[0] for row in as_they_are[1:]] == texts, "without it, data are not changed"
    assert [row[0] for row in guarded[1:]] == [*(f"'{text}" for text in FORMULAS), *HARMLESS]
    assert guarded[0] == ["text", "'=a", "'@predicted", "'@confidence", "'@probability_neg", "'@probability_pos"]
    assert {row[1] for row in guarded[1:]} == {"-1.5" if like == "jsonl" else "'-1.5"}, "numbers are numbers"
    assert [row[2:] for row in guarded[1:]] == [row[2:] for row in as_they_are[1:]], "ours are no formulas"
    undone = [
        [re.sub(r"^'(?='*(?:[\t\r\n\0]|[\s\ufeff]*[=+\-@＝＋－＠]))", "", cell) for cell in row] for row in guarded
    ]
    assert undone == as_they_are, "as the docs say how"


def table_of(file: Path, kind: str) -> list[list[str]]:
    with file.open(newline="", encoding="utf-8") as handle:
        return list(csv.reader(handle, delimiter={"csv": ",", "tsv": "\t"}[kind]))


def test_safe_csv_guards_labels_of_the_model_too(plain: Path, rows: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(plain, model)
    config = json.loads((model / "config.json").read_text())
    config |= {"id2label": {"0": "=bad", "1": "@good"}, "label2id": {"=bad": 0, "@good": 1}}
    (model / "config.json").write_text(json.dumps(config))
    header, *found = csv.reader(io.StringIO(call(model, rows, "--safe-csv").stdout))
    assert header[-2:] == ["predicted", "confidence"]
    assert {row[3] for row in found if len(row) > 3} <= {"'=bad", "'@good"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["{plain}", "{rows}", "--safe-csv", "-o", "out.jsonl"], "out.jsonl would be JSONL; write a .csv or .tsv file"),
        (["{plain}", "{rows}", "--safe-csv", "-o", "out.parquet"], "out.parquet would be Parquet"),
        (["{plain}", "-", "--safe-csv"], "standard output would be JSONL"),
        (["{plain}", "{rows}", "--text", "txet"], "no column 'txet'; columns: id, text, label. Did you mean 'text'?"),
        (["{saved}", "{rows}"], "no column 'title'; columns: id, text, label. Say which with --text COLUMN."),
        (["{saved}", "{rows}", "--text", "text", "--pair", "id"], "trained on single texts, not on pairs"),
        (["{plain}", "missing.csv"], "missing.csv: there is no such file."),
        (["{plain}", "{rows}", "-o", "out.xls"], "unknown format '.xls'"),
        (["{plain}", "{rows}", "--format", "cvs"], "--format cvs: unknown; allowed: csv, tsv, jsonl, parquet, txt."),
        (["{plain}", "{rows}", "--json"], "write them to a file with -o FILE"),
        (["no-such-model", "{rows}"], "no-such-model: there is no such folder."),
        (["{empty}", "{rows}"], "the folder has no config.json"),
        (["{base}", "{rows}"], "so it is not a trained classifier; train one from it"),
        (["{plain}", "{rows}", "--device", "tpu"], "--device tpu: unknown; allowed: auto, cpu"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(
    words: list[str], expected: str, plain: Path, saved: Path, rows: Path, tiny_model: Path, tmp_path: Path
) -> None:
    names = {"plain": plain, "saved": saved, "rows": rows, "empty": tmp_path, "base": tiny_model}
    done = call(*(word.format(**names) for word in words))
    assert done.exit_code == 2, done.output
    assert expected in done.stderr
    assert "Traceback" not in done.output
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_folder_that_was_cut_off_is_refused(saved: Path, rows: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "cut")
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    done = call(tmp_path / "cut", rows, "--text", "text")
    assert done.exit_code == 2
    assert "model.safetensors is cut off" in done.stderr


def test_rows_before_a_bad_one_are_kept(plain: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "good"}\n' * 256 + '{"text": null}\n', encoding="utf-8")
    done = call(plain, file, "-o", tmp_path / "out.csv")
    assert done.exit_code == 2
    assert "row 257: column 'text' has no text" in done.stderr
    assert f"The 256 rows that were done are in {tmp_path / 'out.partial.csv'}." in done.stderr
    assert not (tmp_path / "out.csv").exists()


class Piped:
    """The verb in a process of its own, fed line by line."""

    def __init__(self, *words: object) -> None:
        command = [sys.executable, "-m", "fairtune", "predict", *(str(word) for word in words)]
        self.process = WarmPopen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self.give("a good film", 256)

    def give(self, line: str, times: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode() * times)

    def messages(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def ended(self) -> int:
        return self.process.wait(120)


@pytest.fixture(scope="module")
def piped(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Piped, Piped, Path]]:
    """One that answers to a pipe and one to a file; they start side by side, since that is what takes long."""
    out = tmp_path_factory.mktemp("piped") / "out.jsonl"
    both = Piped(plain), Piped(plain, "-o", out)
    yield (*both, out)
    for one in both:
        one.process.kill()
        one.process.communicate()


def test_a_pipe_that_is_closed_ends_it_quietly(piped: tuple[Piped, Piped, Path]) -> None:
    """As `cat texts | fairtune predict DIR | head -n 1` does."""
    running = piped[0]
    assert running.process.stdout is not None
    first = json.loads(running.process.stdout.readline())
    running.process.stdout.close()
    running.give("the worst plot", 600)
    assert running.messages() == ""
    assert running.ended() == 0
    assert first["text"] == "a good film"


def test_ctrl_c_keeps_the_rows_that_were_done(piped: tuple[Piped, Piped, Path]) -> None:
    _, running, out = piped
    until = time.monotonic() + 120
    while (
        not any(aside.stat().st_size for aside in out.parent.glob(".out.jsonl.*.writing")) and time.monotonic() < until
    ):
        time.sleep(0.05)
    running.process.send_signal(signal.SIGINT)
    partial = out.with_name("out.partial.jsonl")
    assert f"stopped. The 256 rows that were done are in {partial}." in running.messages()
    assert running.ended() == 130
    assert len(lines(partial.read_text(encoding="utf-8"))) == 256
    assert not out.exists()
