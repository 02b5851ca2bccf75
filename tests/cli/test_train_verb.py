"""`fairtune train`: a file becomes a classifier in a folder, and mistakes are reported before the work."""

from __future__ import annotations

import csv
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.classifier.made_examples import make_model, make_texts
from typer.main import get_command
from typer.testing import CliRunner

from fairtune import TextClassifier
from fairtune.cli.app import app
from fairtune.settings.metrics import metrics_of_classes

QUICK = ("--lr", 0.03, "--epochs", 3, "--batch-size", 8, "--validation", 0.2, "--device", "cpu")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("base") / "small-bert")


def table(file: Path, count: int, seed: int = 1, label: str = "kind", odd: str | None = None) -> Path:
    texts, labels = make_texts(count, seed)
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["title", label])
        writer.writerows(zip(texts, labels, strict=True))
        writer.writerows([["a film", odd]] if odd is not None else [])
    return file


def call(*words: object) -> Any:
    return CliRunner().invoke(app, ["train", *(str(word) for word in words)])


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    """A classifier's folder, and what was said when it was trained: to a reader, and as JSON when it was trained again."""
    folder = tmp_path_factory.mktemp("trained")
    words = [
        table(folder / "train.csv", 60), "--model", base, "--text", "title", "--label", "kind", "-o", folder / "mine", *QUICK,
        "--test", table(folder / "test.csv", 30, seed=2), "--method", "focal={gamma: 1}",
        "--set", "warmup=0.2", "--seed", 3,
    ]  # fmt: skip
    said = call(*words)
    assert said.exit_code == 0, said.output
    again = call(*words, "--json")
    assert again.exit_code == 0, again.output
    return folder / "mine", said, json.loads(again.stdout)


def test_says_what_was_learned_how_well_and_how_to_go_on(trained: tuple[Path, Any, Any]) -> None:
    folder, said, _ = trained
    assert re.search(r"neg +24 +6 +15", said.stdout)
    assert re.search(r"accuracy +\d+\.\d+ \[\d+\.\d+, \d+\.\d+\] +\d+\.\d+ \[", said.stdout)
    assert "validation, n = 12" in said.stdout
    assert "test, n = 30" in said.stdout
    assert "|seed:3|" in said.stdout
    assert f"fairtune predict {folder} FILE -o OUT" in said.stdout
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "focal" in card
    assert "On test.csv, after training." in card.partition("## Test")[2]


def test_simple_baselines_stand_beside_it_and_in_its_card(trained: tuple[Path, Any, Any]) -> None:
    folder, said, answer = trained
    assert re.search(r"tfidf +\d+\.\d+ \[", said.stdout)
    assert re.search(r"linear-probe +\d+\.\d+ \[", said.stdout)
    assert [row["name"] for row in answer["baselines"]["rows"]] == [
        "this classifier",
        "majority",
        "tfidf",
        "linear-probe",
    ]
    assert answer["baselines"]["n"] == 30
    assert answer["baselines"]["sentence"] in " ".join((folder / "README.md").read_text(encoding="utf-8").split())
    assert TextClassifier.load(folder)._provenance.baselines is not None


def test_quick_is_a_probe_that_predicts(base: Path, tmp_path: Path) -> None:
    file = table(tmp_path / "train.csv", 40)
    words = (file, "--model", base, "--text", "title", "--label", "kind", "-o", tmp_path / "quick", "--device", "cpu")
    said = call(*words, "--quick", "--no-baselines")
    assert said.exit_code == 0, said.output
    assert "+ linear-probe" in " ".join(said.stdout.split())  # paths may break the line
    assert "tfidf" not in said.stdout
    answered = CliRunner().invoke(app, ["predict", str(tmp_path / "quick"), str(file), "-o", str(tmp_path / "out.csv")])
    assert answered.exit_code == 0, answered.output
    assert (tmp_path / "out.csv").read_text().startswith("title,kind,predicted,confidence")
    refused = call(*words, "--quick", "--epochs", 3)
    assert refused.exit_code == 2
    assert "--epochs: --quick leaves the model as it is, so there is no training to set; remove one." in refused.output


def test_json_has_the_same_and_the_worst_mistakes(trained: tuple[Path, Any, Any]) -> None:
    folder, _, answer = trained
    assert answer["counts"]["train"] == {"neg": 24, "pos": 24}
    assert answer["methods"][0]["focal"]["gamma"] == 1
    named = {figure["metric"] for figure in answer["test"]}
    assert named == set(metrics_of_classes(2))
    assert answer["folder"] == str(folder)
    confidences = [mistake["confidence"] for mistake in answer["mistakes"]]
    assert confidences == sorted(confidences, reverse=True)


def test_the_folder_is_what_the_same_parameters_fit(trained: tuple[Path, Any, Any], base: Path) -> None:
    folder, _, answer = trained
    texts, labels = make_texts(60)
    same = TextClassifier(
        base, methods=[{"focal": {"gamma": 1}}], lr=0.03, epochs=3, batch_size=8, validation=0.2, seed=3, device="cpu",
        train={"warmup": 0.2}, progress=False,
    ).fit(texts, labels)  # fmt: skip
    assert same.signature_ == answer["signature"]
    loaded = TextClassifier.load(folder, device="cpu")
    some = [["a good film"], ["the worst plot"]]
    assert (loaded.predict_proba(some) == same.predict_proba(some)).all()
    assert (loaded.classes_ == ["neg", "pos"]).all()


def test_predict_takes_over_the_columns(trained: tuple[Path, Any, Any], tmp_path: Path) -> None:
    file = table(tmp_path / "more.csv", 12, seed=5)
    done = CliRunner().invoke(app, ["predict", str(trained[0]), str(file), "-o", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    assert "against 'kind'" in done.stderr


def test_validation_may_be_a_file_or_none_and_test_texts_that_were_trained_on_are_reported(
    base: Path, tmp_path: Path
) -> None:
    file = table(tmp_path / "train.csv", 20)
    words = [file, "--model", base, "--text", "title", "--label", "kind", *QUICK, "--epochs", 1, "--json"]
    given = call(*words, "-o", tmp_path / "a", "--validation", table(tmp_path / "v.csv", 10, seed=4), "--test", file)
    assert given.exit_code == 0, given.output
    answer = json.loads(given.stdout)
    assert answer["counts"]["validation"] == {"neg": 5, "pos": 5}
    assert any("20 of the test texts are training texts too" in note for note in answer["notes"])
    none = call(*words, "-o", tmp_path / "b", "--validation", 0)
    assert none.exit_code == 0, none.output
    assert json.loads(none.stdout)["validation"] is None


def test_ctrl_c_saves_what_was_learned_and_says_so(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairtune.core.errors import Stopped
    from fairtune.training.loop import TrainingRun

    class Interrupting(TrainingRun):
        def advance(self) -> None:
            if self.progress.step >= 2:
                raise Stopped
            super().advance()

    monkeypatch.setattr("fairtune.classifier.fit.TrainingRun", Interrupting)
    words = [table(tmp_path / "train.csv", 40), "--model", base, "--text", "title", "--label", "kind", *QUICK]
    done = call(*words, "-o", tmp_path / "mine")
    assert done.exit_code == 130
    assert "stopped. The best so far is saved" in done.stderr
    assert "partial" in done.stdout
    assert TextClassifier.load(tmp_path / "mine", device="cpu").partial_

    def at_once(_: Any) -> None:
        raise Stopped

    monkeypatch.setattr(Interrupting, "advance", at_once)
    nothing = call(*words, "-o", tmp_path / "other")
    assert nothing.exit_code == 130
    assert "before anything was learned, so nothing was saved" in nothing.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["{data}", "--label", "kid"], "no column 'kid'; columns: title, kind. Did you mean 'kind'?"),
        (["{data}", "--pair", "second"], "no column 'second'"),
        (["missing.csv"], "missing.csv: there is no such file."),
        (["{data}", "--epochs", "-1"], "epochs: found -1.0"),
        (["{data}", "--method", "foccal"], "no method or named arm 'foccal'"),
        (["{data}", "--method", "focal={{gamma: -1}}"], "gamma"),
        (["{data}", "--max-length", "²"], "max_length: found '²'"),
        (["{data}", "--max-length", "9" * 400], "max_length: found '999"),
        (["{data}", "--seed", "9223372036854775808"], "seed: found 9223372036854775808"),
        (["{data}", "--epochs", "inf"], "epochs: found inf"),
        (["{data}", "--set", "warmup=[[[[" + "[" * 100], "not valid YAML"),
        (["{data}", "--set", "warmup"], "--set warmup: write KEY=VALUE"),
        (["{data}", "--set", "warmupp=1"], "Did you mean 'warmup'?"),
        (["{data}", "--metric", "auc"], "metric"),
        (["{data}", "--validation", "missing.csv"], "missing.csv: there is no such file."),
        (["{data}", "--test", "{odd}"], "the label 'ood' is not among those of"),
        (["{data}", "--model", "no/such/model"], "model 'no/such/model'"),
        (["{unlabelled}"], "column 'kind' has no label in 1 of 11 rows (rows 11)"),
        (["{one}"], "only one class"),
        (["{data}", "-o", "{busy}"], "the folder holds other things"),
    ],
)
def test_bad_input_is_reported_with_code_2(words: list[str], expected: str, base: Path, tmp_path: Path) -> None:
    (tmp_path / "busy").mkdir()
    (tmp_path / "busy" / "thesis.doc").touch()
    one = tmp_path / "one.csv"
    one.write_text("title,kind\na film,pos\nthe plot,pos\n", encoding="utf-8")
    names = {
        "data": table(tmp_path / "data.csv", 10), "odd": table(tmp_path / "odd.csv", 10, odd="ood"), "one": one,
        "unlabelled": table(tmp_path / "unlabelled.csv", 10, odd=""), "busy": tmp_path / "busy",
    }  # fmt: skip
    given = [word.format(**names) for word in words]
    usual = {"--model": str(base), "--text": "title", "--label": "kind", "-o": str(tmp_path / "out")}
    for option, value in usual.items():
        given += [] if option in given else [option, value]
    done = call(*given, "--device", "cpu")
    assert done.exit_code == 2, done.output
    assert expected in done.stderr
    assert "Traceback" not in done.output
    assert not (tmp_path / "out").exists()


def test_tables_as_people_have_them(base: Path, tmp_path: Path) -> None:
    """Semicolons, an old encoding, gaps among the labels and a class that is called NA, from train to predict."""
    texts, labels = make_texts(40, 1)
    rows = [f"{text} é;{'NA' if label == labels[0] else label}" for text, label in zip(texts, labels, strict=True)]
    file = tmp_path / "old.csv"
    file.write_bytes("\r\n".join(["title;kind", *rows, "a film;", "another;null"]).encode("cp1252"))
    words = [
        file,
        "--model",
        base,
        "--text",
        "title",
        "--label",
        "kind",
        "-o",
        tmp_path / "mine",
        *QUICK,
        "--no-baselines",
    ]
    assert "`--encoding windows-1252`" in call(*words).stderr
    words += ["--encoding", "latin-1"]
    missing = call(*words).stderr
    assert "no label in 22 of 42 rows" in missing
    assert "list all classes under `--labels A,B,...`" in missing
    other = next(label for label in labels if label != labels[0])
    words += ["--labels", f"NA,{other}"]
    assert "no label in 2 of 42 rows (rows 41, 42; 'null' counts as none)" in call(*words).stderr
    done = call(*words, "--skip-unlabelled")
    assert done.exit_code == 0, done.output
    assert "read as encoded as cp1252 and its columns separated by semicolons." in done.stderr
    assert "old.csv: 2 of 42 rows have no label and are left out (rows 41, 42)." in done.stderr
    wrong = call(*words[:-1], "NA,odder", "--skip-unlabelled").stderr
    assert f"the label '{other}' occurs 20 times but is not among --labels: NA, odder." in wrong
    out = tmp_path / "answers.csv"
    answered = CliRunner().invoke(
        app, ["predict", str(tmp_path / "mine"), str(file), "-o", str(out), "--encoding", "windows-1252"]
    )
    assert answered.exit_code == 0, answered.output
    assert "n = 40" in answered.stderr, "NA is a class of this model"
    assert "not scored: 2 rows without a label" in answered.stderr
    assert out.read_text(encoding="utf-8").splitlines()[0] == "title,kind,predicted,confidence"


def test_the_help_names_the_defaults_of_the_estimator() -> None:
    commands: Any = vars(get_command(app))["commands"]
    helped = {option.name: option.help for option in commands["train"].params}
    defaults = inspect.signature(TextClassifier).parameters
    for name in ("epochs", "lr", "batch_size", "max_length", "validation", "patience", "metric", "seed"):
        default = defaults[name].default
        assert ("5e-5" if default == 5e-5 else str(default)) in helped[name], name
