"""`fairtune suite`: from a file to a page, without training anything, and with what cannot be run named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.report.made_suites import add_study, baseline, gaining
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.study.study_file import load_study

GOOD = (20, 22, 18, 19)
STUDY = "study: {name}\ntask: {task}\nmodel: minilm\nseeds: 4\narms: {{baseline: {{}}, focal: {{methods: [focal]}}}}\n"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three studies on disk, and a fourth whose data are nowhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIRTUNE_MIRROR", raising=False)
    for task in ("sst2", "mrpc", "cola", "imdb"):
        (tmp_path / f"{task}.yaml").write_text(STUDY.format(name=f"{task}-made", task=task) + "metric: accuracy\n")
        if task != "imdb":
            add_study(tmp_path / "runs", f"{task}-made", task, {"baseline": baseline(), "focal": gaining(*GOOD)})
    file = tmp_path / "s.yaml"
    file.write_text("suite: mine\nstudies: [sst2.yaml, mrpc.yaml, cola.yaml, imdb.yaml]\n")
    return file


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.usefixtures("undrawn")
def test_the_runs_on_disk_are_reported_without_running_any(suite: Path) -> None:
    done = call("suite", suite, "--report")
    assert done.exit_code == 0, done.output
    assert "Better: focal" in done.output
    assert "over 3 of 4 tasks, without imdb (not run)" in " ".join(done.output.split())
    folder = Path("runs/suites/mine")
    assert {path.name for path in folder.iterdir()} == {"index.html", "suite.md", "suite.json"}
    found = json.loads(call("suite", suite, "--report", "--json", "-o", "elsewhere").stdout)
    assert found == json.loads((folder / "suite.json").read_text())
    (arm,) = found["metrics"][0]["arms"]
    assert (arm["verdict"], arm["tasks"], arm["planned_tasks"]) == ("better", 3, 4)
    assert [cell["state"] for cell in arm["cells"]] == ["counted", "counted", "counted", "not run"]
    assert Path("elsewhere/index.html").is_file()


def test_studies_are_run_in_turn_by_the_code_of_run_and_one_that_cannot_stops_no_other(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairtune.execution.study_run import StudyOutcome

    ran: list[str] = []

    def perform(study: Any, *_: Any, **__: Any) -> StudyOutcome:
        ran.append(study.study)
        outcome = StudyOutcome()
        outcome.failed["focal/seed-1"] = "the loss is nan"
        return outcome

    from fairtune.core.errors import DataError

    def checked(source: Any) -> Any:
        study = load_study(source)
        if study.study == "mrpc-made":
            raise DataError("task 'mrpc': no data.")
        return study

    monkeypatch.setattr("fairtune.cli.run.perform_study", perform)
    monkeypatch.setattr("fairtune.study.study_file.load_checked", checked)
    monkeypatch.setattr("fairtune.report.writer.write_report", lambda _: None)
    monkeypatch.setattr("fairtune.analysis.results.load_results", lambda *_: None)
    done = call("suite", suite)
    assert ran == ["sst2-made", "cola-made", "imdb-made"]
    assert done.exit_code == 1
    assert "mrpc-made cannot be run: task 'mrpc': no data." in done.stderr
    assert "sst2-made/focal/seed-1 failed: the loss is nan" in done.stderr


def test_a_plan_names_every_study_and_what_is_not_here(suite: Path) -> None:
    done = call("suite", suite, "--plan", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [cell["study"] for cell in found["studies"]] == ["sst2-made", "mrpc-made", "cola-made", "imdb-made"]
    assert {cell["runs"] for cell in found["studies"]} == {8}
    assert all(cell["trouble"] for cell in found["studies"]), found["studies"]
    assert not Path("runs/suites").exists()
    assert "cannot be run here" in call("suite", suite, "--plan").output


def test_wrong_input_is_one_sentence_and_exit_code_two(suite: Path) -> None:
    done = call("suite", "nowhere.yaml")
    assert done.exit_code == 2
    assert "there is no such suite file" in done.stderr
    both = call("suite", suite, "--plan", "--report")
    assert both.exit_code == 2
    assert "leave out one of the two" in both.stderr
    wrong = call("suite", suite, "--profile", "laptop", "--json")
    assert wrong.exit_code == 2
    assert "this suite has none" in json.loads(wrong.stdout)["error"]


def test_a_suite_that_is_run_is_on_record_before_its_first_study(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Path("runs/suites/mine/history.json")
    seen = []

    def run(*_: Any) -> bool:
        seen.append(json.loads(record.read_text())["history"][0]["known"])
        return False

    monkeypatch.setattr("fairtune.cli.suite._run", run)
    monkeypatch.setattr("fairtune.cli.suite.show_suite", lambda *_: None)
    assert call("suite", suite).exit_code == 0
    assert seen == [{"sst2-made": 8, "mrpc-made": 8, "cola-made": 8, "imdb-made": 0}] * 4
    record.write_text("{}")
    damaged = call("suite", suite)
    assert damaged.exit_code == 2
    assert "history.json has no seal" in damaged.stderr


def test_validate_knows_a_suite_with_its_profiles_and_what_its_studies_name(suite: Path) -> None:
    text = suite.read_text()
    suite.write_text(text + "profiles: {two: {suite: mine-two, studies: [sst2.yaml, mrpc.yaml]}}\n")
    done = call("validate", suite)
    assert done.exit_code == 0, done.output
    assert "valid. A suite of 4 studies on 4 tasks, 32 runs; profiles: two" in done.output
    found = json.loads(call("validate", suite, "--json").stdout)
    assert (found["suite"], found["studies"][3], found["profiles"]) == ("mine", "imdb-made", ["two"])
    suite.write_text(text + "profiles: {two: {studies: [sst2.yaml, nowhere.yaml]}, three: {studis: [sst2.yaml]}}\n")
    wrong = call("validate", suite)
    assert wrong.exit_code == 2
    assert "profile two: " in wrong.stderr
    assert "nowhere.yaml" in wrong.stderr
    assert "profile three: studis" in wrong.stderr


def test_validate_looks_at_the_files_of_a_suites_studies(suite: Path) -> None:
    Path("mine.csv").write_text("review,stars\ngood,1\nbad,0\n")
    Path("cola.yaml").write_text(
        STUDY.format(name="cola-made", task="{train: mine.csv, text: reviw, label: stars}") + "metric: accuracy\n"
    )
    wrong = call("validate", suite)
    assert wrong.exit_code == 2
    assert "reviw" in wrong.stderr
    assert "cola.yaml:2" in wrong.stderr


def test_the_schema_of_a_suite_takes_both_of_its_forms(suite: Path) -> None:
    import jsonschema

    from fairtune.study.yaml_tree import parse_yaml

    schema = json.loads(call("schema", "--suite").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    for text in (suite.read_text(), *(path.read_text() for path in Path(__file__).parents[2].glob("suites/*.yaml"))):
        jsonschema.validate(parse_yaml(text).data, schema)
    with pytest.raises(jsonschema.ValidationError, match="studis"):
        jsonschema.validate({"suite": "mine", "studis": []}, schema)


@pytest.mark.usefixtures("undrawn")
def test_from_python(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fairtune
    from fairtune.core.errors import DataError

    found = fairtune.load_suite_results(suite)
    assert found.words == {"accuracy": {"focal": "better"}}
    assert "mine: 4 studies of 4 tasks, 3 finished" in str(found)

    def run(source: Any, *_: Any, **__: Any) -> None:
        if load_study(source).study == "imdb-made":
            raise DataError("no data here")

    monkeypatch.setattr("fairtune.api.run_study", run)
    ran = fairtune.run_suite(suite, progress=False)
    assert ran.words == found.words
    assert (ran.studies[3].state, ran.studies[3].reason) == ("not run", "no data here")
