"""`fairtune init`: what is written is a study that plans, whatever the file; what cannot be one is told, and nothing is written."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.study.starter import SCHEMA_FILE, study_name
from fairtune.study.study_file import check_file, load_study

HOSTILE = [
    "a: b",
    "it's \"quoted\"", "#hash", "null", "yes", "1.0", "naïve 日本", "🎈", "tab\there", "{x: [1]}", "- dash", "two\nlines", " pad ",
    "`tick`", "%p", "!tag", "&anchor", "\\n", "~",
]  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: object) -> Any:
    return CliRunner().invoke(app, ["init", *map(str, words)])


def write(
    file: Path | str, text: str = "review", label: str = "stars", labels: Any = ("good", "bad"), rows: int = 120
) -> Path:
    """A table with an id, a text and a label in each row."""
    with Path(file).open("w", newline="", encoding="utf-8") as handle:
        table = csv.writer(handle)
        table.writerow(["id", text, label])
        table.writerows([n, f"text number {n} says {'much' * (n % 3)}", labels[n % len(labels)]] for n in range(rows))
    return Path(file)


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_what_it_writes_has_controls_baselines_comments_and_a_schema() -> None:
    call(write("reviews.csv"))
    text = Path("reviews.yaml").read_text(encoding="utf-8")
    assert text.startswith(f"# yaml-language-server: $schema={SCHEMA_FILE}\n")
    assert json.loads(Path(SCHEMA_FILE).read_text(encoding="utf-8"))["title"] == "fairtune study"
    study = check_file(Path("reviews.yaml"))
    assert (study.study, study.model, len(study.seeds)) == ("reviews", "minilm", 5)
    assert study.dedupe
    assert study.compare.margin == "1.5%"
    methods = [arm for arm in study.arms if study.methods(arm)]
    plain = {study.settings(arm).lr for arm in study.arms if not study.methods(arm) and study.learner(arm) is None}
    assert methods
    assert all(study.settings(arm).lr in plain for arm in methods), "each has its control"
    assert len(plain) == 2, "a second rate"
    assert [arm for arm in study.arms if study.learner(arm)] == ["majority", "tfidf", "linear-probe"]
    for section in ("study:", "  train:", "seeds:", "  baseline-fast:", "  margin:"):
        line = next(line for line in text.splitlines() if line.startswith(section))
        assert "  # " in line, "it says what it is for"


def test_an_editor_finds_nothing_wrong() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    import yaml

    call(write("reviews.csv"))
    schema = json.loads(Path(SCHEMA_FILE).read_text(encoding="utf-8"))
    found = yaml.safe_load(Path("reviews.yaml").read_text(encoding="utf-8").replace("e-", ".0e-"))
    jsonschema.Draft202012Validator(schema).validate(found)


def test_what_it_writes_can_be_planned(tiny_model: Path, here: Path) -> None:
    (here / "data").mkdir()
    (here / "studies").mkdir()
    file = write("data/my 'own' reviews (1).csv", labels=["1", "2", "2", "", "2", "2"], rows=400)
    answer = call(file, "-o", "studies/mine.yaml")
    assert "  67 rows have no label and are skipped" in answer.output
    planned = CliRunner().invoke(app, ["plan", "studies/mine.yaml", "--set", f"model={tiny_model}", "--json"])
    assert planned.exit_code == 0, planned.output
    plan = json.loads(planned.stdout)
    assert [caution for caution in plan["cautions"] if caution["grade"] == "refusal"] == []
    assert plan["arms"]["layerwise"]["primary"] == "baseline"


@pytest.mark.parametrize("name", HOSTILE)
def test_columns_may_be_called_anything(name: str) -> None:
    for given in ({"text": name}, {"label": name}):
        file = write("d.csv", **given)
        words = ["--text", given.get("text", "review"), "--label", given.get("label", "stars"), "--force"]
        answer = call(file, *words)
        assert answer.exit_code == 0, answer.output
        task: Any = load_study(Path("d.yaml")).task
        assert (task.text, task.label) == ((given.get("text", "review"),), given.get("label", "stars"))


@pytest.mark.parametrize(
    "name", ["my file.csv", "it's.csv", 'a"b.csv', "#x.csv", "~x.csv", "-x.csv", "日本.csv", "a: b.csv", ".csv.csv"]
)
def test_files_may_be_called_anything(name: str, here: Path) -> None:
    write(name)
    answer = call(here / name)
    assert answer.exit_code == 0, answer.output
    (file,) = here.glob("*.yaml")
    task: Any = load_study(file).task
    assert Path(task.train).resolve() == here / name
    assert "\n  train: " in file.read_text(encoding="utf-8")


def test_labels_may_be_called_anything_and_be_many() -> None:
    answer = call(write("d.csv", labels=HOSTILE, rows=600), "--text", "review", "--label", "stars")
    assert answer.exit_code == 0, answer.output
    assert "\x1b" not in answer.output
    load_study(Path("d.yaml"))


@pytest.mark.parametrize(
    ("table", "metric", "method", "settings"),
    [
        ({"labels": ("0", "1"), "rows": 100}, "accuracy", "smoothing", (10, 16, "auto")),
        ({"labels": ("1.0", "0.0", "1.0", "1.0"), "rows": 1000}, "macro_f1", "weighted", (5, 16, "auto")),
        ({"labels": "abcde", "rows": 4000}, "accuracy", "smoothing", (3, 32, "auto")),
        ({"rows": 40_000}, "accuracy", "smoothing", (1, 32, "auto")),
    ],
)
def test_metric_method_and_settings_fit_the_data(
    table: dict[str, Any], metric: str, method: str, settings: tuple[Any, ...]
) -> None:
    call(write("d.csv", **table))
    study = load_study(Path("d.yaml"))
    task: Any = study.task
    assert task.metric == metric
    assert method in study.arms
    assert (study.train.epochs, study.train.batch_size, study.train.max_length) == settings


def test_long_texts_are_cut() -> None:
    Path("d.jsonl").write_text(
        "".join(json.dumps({"body": f"{n} " + "word " * 400, "topic": "ab"[n % 2]}) + "\n" for n in range(80))
    )
    call("d.jsonl")
    assert load_study(Path("d.yaml")).train.max_length == 256


def test_pairs_are_seen_by_their_names_or_said() -> None:
    rows = [(f"one thing {n}", f"another thing {n}", "no" if n % 2 else "yes") for n in range(60)]
    for header, words in (
        ("premise,hypothesis,label", []),
        ("left,right,kind", ["--text", "left", "--text", "right", "--label", "kind"]),
    ):
        Path("d.csv").write_text("\n".join([header, *map(",".join, rows)]) + "\n")
        answer = call("d.csv", *words, "--force")
        assert answer.exit_code == 0, answer.output
        task: Any = load_study(Path("d.yaml")).task
        assert task.text == tuple(header.split(",")[:2])


@pytest.mark.parametrize(
    ("content", "words", "expected"),
    [
        ("a,b,c\n" + "1,2,3\n" * 9, [], "which column holds the texts and the labels is not clear; say --text COLUMN --label "),
        ("a,b,c\n" + "1,2,3\n" * 9, [], " Columns: a (1 value), b (1 value), c (1 value)."),
        ("text,label\n" + "some words of text,x\n" * 9, ["--text", "text"], "column 'label' has one class only ('x')"),
        ("text,label\n" + "some words of text,\n" * 9, ["--text", "text"], "column 'label' has no label in any row"),
        ("text,label\nfirst text of all,x\nsecond text of all,y\n", ["--text", "text"], "too few rows (2)"),
        ("text,label\n", [], "d.csv: there are no rows"),
        ("", [], "d.csv: the file is empty"),
        ("text,label\n" + "".join(f"some words {n},c{n}\n" for n in range(50)), ["--text", "text"], "50 different values in 50"),
        ("text,label\none two three,x\n", ["--text", "txet"], "no column 'txet'; columns: text, label. Did you mean 'text'?"),
        ("text,label\none two three,x\n", ["--text", "text", "--label", "text"], "must name different columns"),
        ("text,label\n" + "".join(f"{f'text {n}' if n % 20 else ''},{'ab'[n % 3 % 2]}\n" for n in range(120)), [],
         "fairtune: d.csv: column 'text' has no text in 6 of 120 rows (rows 1, 21, 41, 61, 81 ...)"),
        (None, [], "d.csv: there is no such file"),
        ("", ["-o", "study.txt"], "a study file ends in .yaml"),
        ("", ["-o", "none/study.yaml"], "there is no folder none"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_study_is_told_and_nothing_is_written(
    content: str | None, words: list[str], expected: str
) -> None:
    if content is not None:
        Path("d.csv").write_text(content)
    answer = call("d.csv", *words)
    assert answer.exit_code == 2
    assert expected in squeezed(answer.output)
    assert [path.name for path in Path().iterdir() if path.name != "d.csv"] == []


@pytest.mark.parametrize(("name", "expected"), [("d.txt", "no label column"), ("d.json", "unknown format '.json'")])
def test_other_kinds_of_files_are_refused(name: str, expected: str) -> None:
    Path(name).write_text("hello\n")
    answer = call(name)
    assert answer.exit_code == 2
    assert expected in squeezed(answer.output)


def test_nothing_is_overwritten_unless_forced() -> None:
    file = write("d.csv")
    Path("d.yaml").write_text("precious")
    Path(SCHEMA_FILE).write_text('{"title": "mine"}')
    refused = call(file)
    assert refused.exit_code == 2
    assert "d.yaml: there is one already; choose another name with -o FILE, or add --force" in squeezed(refused.output)
    assert Path("d.yaml").read_text() == "precious"
    forced = call(file, "--force")
    assert forced.exit_code == 0
    assert Path("d.yaml").read_text() != "precious"
    assert Path(SCHEMA_FILE).read_text() == '{"title": "mine"}', "another's file of that name is left as it is"
    assert "was left as it is" in squeezed(forced.output)


def test_it_says_what_it_saw_and_how_to_go_on() -> None:
    shown = call(write("d.csv"))
    assert shown.exit_code == 0, shown.output
    answer = json.loads(call("d.csv", "--force", "--json").stdout)
    assert (answer["text"], answer["label"], answer["rows"]) == (["review"], "stars", 120)
    assert answer["labels"] == {"good": 60, "bad": 60}
    assert answer["next"] == ["fairtune plan d.yaml", "fairtune run d.yaml"]
    for fact in ("120 rows, 3 columns", "review", "stars", "good 50%, bad 50%", *answer["next"]):
        assert fact in shown.output


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a b.csv", "a-b"),
        ("x.csv.gz", "x"),
        ("日本.csv", "my-study"),
        ("__init__.csv", "init__"),
        ("." * 3, "my-study"),
        ("a" * 300, "a" * 90),
    ],
)
def test_names_of_studies_are_what_a_file_system_takes(file: str, name: str) -> None:
    assert study_name(Path(file)) == name


def test_a_task_by_name_begins_a_study_too() -> None:
    answer = call("movie-reviews")
    assert answer.exit_code == 0, answer.output
    assert "movie-reviews: train 6,893, validation 395, test 1,242" in answer.output
    study = check_file(Path("movie-reviews.yaml"))
    assert study.task == "movie-reviews"
    assert not study.dedupe, "its splits are as published"
    columns = call("movie-reviews", "--text", "review", "--force")
    assert columns.exit_code == 2
    assert "is a task by name, whose columns are known" in squeezed(columns.output)


def test_what_is_commented_out_loads_too() -> None:
    call(write("d.csv"))
    text = Path("d.yaml").read_text(encoding="utf-8")
    for line in ("# tune: ", "# time: "):
        assert f"\n{line}" in text
        Path("other.yaml").write_text(text.replace(f"\n{line}", f"\n{line[2:]}"), encoding="utf-8")
        check_file(Path("other.yaml"))


def test_a_table_without_a_header_is_told_before_a_row_becomes_its_names() -> None:
    rows = "".join(f"this film is number {n} of many,{n % 2}\n" for n in range(60))
    Path("bare.csv").write_text(rows)
    answer = call("bare.csv")
    assert answer.exit_code == 2
    assert "the first line looks like a row, not like names of columns: 'this film is number 0 of many' and '0'" in (
        answer.stderr
    )
    assert not Path("bare.yaml").exists()
    assert call("bare.csv", "--text", "this film is number 0 of many", "--label", "0").exit_code == 0
    Path("named.csv").write_text(
        "text,spam\n" + "".join(f"a text {n},{'spam' if n % 2 else 'ham'}\n" for n in range(60))
    )
    assert call("named.csv").exit_code == 0, "a class may be called as its column is"
