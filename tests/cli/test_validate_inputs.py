"""`validate` looks at what a study names, tells all that is wrong at once, and plan and run say the same."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.warm import light_run
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_checked

GOOD = "text,label\n" + "".join(f"text {n},{'ab'[n % 2]}\n" for n in range(60))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(GOOD)
    return tmp_path


def write(task: Any = None, **more: Any) -> Path:
    file = Path("study.yaml")
    study = {"study": "s", "task": task or {"train": "good.csv"}, "model": "minilm", "arms": ["baseline"], "seeds": 3}
    file.write_text(yaml.safe_dump({**study, **more}, sort_keys=False))
    return file


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def problems(file: Path) -> list[str]:
    answer = call("validate", file)
    assert answer.exit_code == 2, answer.output
    return [line.removeprefix("fairtune: ") for line in answer.stderr.splitlines()]


def test_a_study_whose_data_is_right_is_valid() -> None:
    assert "valid. 1 arm x 3 seeds = 3 runs" in call("validate", write()).stdout


def test_everything_is_told_at_once_with_its_line(folder: Path) -> None:
    (folder / "test.csv").write_text("body,lable\nold,a\n")
    file = write(
        {"train": "gone.csv", "validation": "good.csv", "test": "test.csv", "text": "body", "label": "label"},
        model="./no-model", train={"epochz": 1}, arms={"baseline": {"lr": -1}, "other": {"model": "a/b/c", "lr": 1e-3}},
    )  # fmt: skip
    found = problems(file)
    for expected in (
        "study.yaml:3: task.train: ",
        "gone.csv: there is no such file.",
        "study.yaml:4: task.validation: ",
        "no column 'body'; columns: text, label.",
        "study.yaml:5: task.test: ",
        "no column 'label'; columns: body, lable. Did you mean 'lable'?",
        "study.yaml:8: model: '",
        "no-model': there is no such folder",
        "train.epochz: unknown key",
        "arms.baseline.lr: found -1",
        "arms.other.model: 'a/b/c'",
    ):
        assert sum(expected in line for line in found) == 1, (expected, found)


def test_plan_and_run_say_the_same() -> None:
    file = write({"train": "good.csv", "text": "body", "label": "lable"}, model="./no-model")
    wanted = call("validate", file).stderr.splitlines()
    assert len(wanted) == 2
    assert "no column 'body', 'lable'; columns: text, label. Did you mean 'label'?" in wanted[0]
    for verb in ("plan", "run", "time"):
        said = [line for line in call(verb, file).stderr.splitlines() if ": reading" not in line]
        assert said == wanted, verb


@pytest.mark.parametrize(
    ("rows", "more", "expected"),
    [
        (
            "one,a\ntwo,\nthree,NaN\n",
            {},
            ["no label in 2 of 3 rows (rows 2, 3; 'NaN' counts as none)", "`unlabelled: skip`"],
        ),
        ("".join(f"text {n},a\n" for n in range(40)), {}, ["has one class only ('a')"]),
        ("one,a\ntwo,b\n", {}, ["too few rows (2) to hold out a"]),
        ("one,a\n,b\n  ,b\n", {}, ["column 'text' has no text in 2 of 3 rows (rows 2, 3)"]),
        (
            GOOD.partition("\n")[2],
            {"labels": ["a", "c"]},
            ["label 'b' (", "no training example has the label c"],
        ),
        (
            "one,a\ntwo,b\n" * 9,
            {"test": "test.csv"},
            ["label 'x' (1 row), 'y' (2 rows) in the test split"],
        ),
        (GOOD.partition("\n")[2], {"kinds": "sort"}, ["task.kinds: no column 'sort'"]),
        (
            GOOD.partition("\n")[2],
            {"holdout": {"validation": 0.6, "test": 0.5}},
            ["task: holdout: the validation and test"],
        ),
    ],
)
def test_rows_and_labels_are_looked_at(folder: Path, rows: str, more: dict[str, Any], expected: list[str]) -> None:
    (folder / "d.csv").write_text("text,label\n" + rows)
    (folder / "test.csv").write_text("text,label\none,x\ntwo,y\nthree,y\n")
    split = {"validation": "d.csv"} if "test" in more else {}
    found = "\n".join(problems(write({"train": "d.csv", **split, **more})))
    for words in expected:
        assert words in found


def test_each_problem_is_told_once_whatever_profile_shares_it() -> None:
    profiles = {
        "short": {"seeds": 2},
        "other": {"task": {"train": "nowhere.csv"}},
        "fine": {"task": {"train": "good.csv"}},
    }
    found = problems(write({"train": "gone.csv"}, profiles=profiles))
    assert len(found) == 2
    assert "gone.csv: there is no such file." in found[0]
    assert "profile other: task.train: " in found[1]
    assert "nowhere.csv: there is no such file." in found[1]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"task": "sst3"}, "task: 'sst3': not in the catalogue"),
        ({"task": "sst2", "train_on": "mlni"}, "Did you mean 'mnli'?"),
        ({"model": "bert base"}, "model: 'bert base': no folder of that name, and no hub id has this form."),
        ({"model": "empty"}, "the folder has no config.json"),
        ({"model": "good.csv/x/y"}, "there is no such folder"),
    ],
)
def test_names_that_nobody_has_are_refused(folder: Path, more: dict[str, Any], expected: str) -> None:
    (folder / "empty").mkdir()
    assert expected in "\n".join(problems(write(**more)))


def test_what_is_not_on_this_machine_is_said_and_is_no_fault_of_the_study(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FAIRTUNE_MIRROR", raising=False)
    file = write("ag_news", model="who/knows", profiles={"short": {"seeds": 2}})
    answer = call("validate", file)
    assert answer.exit_code == 0, answer.output
    absent = [line for line in answer.stdout.splitlines() if line.startswith("not on this machine: ")]
    assert len(absent) == 2, "each once"
    assert "task: 'ag_news': no local mirror has it, and HF_HUB_OFFLINE forbids the hub" in absent[0]
    assert "model: 'who/knows': no folder of that name, not in the hub's cache" in absent[1]
    assert [found["path"] for found in json.loads(call("validate", file, "--json").stdout)["not_here"]] == [
        "task",
        "model",
    ]
    refused = call("plan", file)
    assert refused.exit_code == 2
    assert "no local mirror has it" in refused.stderr
    assert "model: 'who/knows'" in refused.stderr


def test_what_was_read_before_needs_neither_mirror_nor_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mirror = tmp_path / "mirror" / "sst2"
    mirror.mkdir(parents=True)
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(mirror.parent))
    for split in ("train", "validation"):
        rows = "".join(json.dumps({"sentence": f"{split} {n}", "label": n % 2}) + "\n" for n in range(20))
        (mirror / f"{split}.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    found = json.loads(call("validate", write("sst2"), "--json").stdout)["not_here"]
    assert [one["message"] for one in found] == [
        f"'sst2': the mirror {mirror.parent} lacks sst2/test.jsonl.gz; add it, or unset FAIRTUNE_MIRROR to use the hub."
    ]


def test_a_file_that_was_mended_is_looked_at_again(folder: Path) -> None:
    (folder / "d.csv").write_text("text,label\none,\n")
    file = write({"train": "d.csv"})
    assert "no label in 1 of 1 rows" in problems(file)[0]
    (folder / "d.csv").write_text(GOOD)
    assert call("validate", file).exit_code == 0


def test_text_for_language_models_is_looked_at_too() -> None:
    task = {"kind": "language_model", "train": "good.csv", "text": "body"}
    found = problems(write(task, model="gpt-mini", tokenizer={"train": 300}))
    assert len(found) == 1
    assert "task.train: " in found[0]
    assert "no column 'body'" in found[0]


def test_no_torch_is_needed_for_it(folder: Path) -> None:
    write({"train": "good.csv", "label": "lable"}, model="./nowhere")
    code = (
        "import sys; from fairtune.cli.app import app\n"
        "try: app(['validate', 'study.yaml'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'transformers', 'datasets') if m in sys.modules])"
    )
    done = light_run([sys.executable, "-c", code], text=True, timeout=60, cwd=folder)
    assert "no column 'lable'" in done.stderr
    assert done.stdout.strip().endswith("[]")


@pytest.mark.parametrize(("name", "likely"), [("minilmm", "minilm"), ("gpt-minni", "gpt-mini")])
def test_a_name_that_only_the_hub_could_know_is_told(name: str, likely: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    answer = call("validate", write(model=name))
    assert answer.exit_code == 0, "a hub id may have this form"
    assert f"it will be fetched from the hub. Did you mean '{likely}'?" in answer.stdout
    assert load_checked(write(model=name)).model == name, "and a run fetches it"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(StudyError, match="HF_HUB_OFFLINE is set"):
        load_checked(write(model=name))
