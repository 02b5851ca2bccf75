"""Help: every verb fits a screen and begins with an example that works; fields of a study are explained one by one."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.study.fields import field_docs, find_fields, method_names

LINES, COLUMNS = 40, 80


def _verbs(command: Any = None, words: tuple[str, ...] = ()) -> dict[str, Any]:
    """Every verb and every group of verbs, by what it is called by."""
    command = command or typer.main.get_command(app)
    found = {" ".join(words): command}
    for name in getattr(command, "commands", ()):
        found |= _verbs(command.commands[name], (*words, name))
    return found


VERBS = _verbs()


def call(*words: str) -> Any:
    return CliRunner(env={"COLUMNS": str(COLUMNS)}).invoke(app, list(words))


@pytest.mark.parametrize("verb", VERBS, ids=lambda words: words or "fairtune")
def test_help_fits_a_screen_and_begins_with_an_example(verb: str) -> None:
    shown = call(*verb.split(), "--help").output
    lines = shown.splitlines()
    assert len(lines) <= LINES, verb
    assert max(map(len, lines)) <= COLUMNS
    assert not {"<bool>", "<path>", "<str>", "<int>", "<float>", "[default"} & {
        word.strip("│") for word in shown.split()
    }
    summary = next(place for place, line in enumerate(lines) if place and not line)
    assert any(line.startswith("Example: fairtune ") for line in lines[summary : summary + 5]), "it comes first"
    assert shown == call("help", *verb.split()).output or not verb


@pytest.mark.parametrize("verb", VERBS, ids=lambda words: words or "fairtune")
def test_the_example_of_a_verb_is_a_command_that_it_takes(verb: str) -> None:
    command = VERBS[verb]
    words = shlex.split(command.page(f"fairtune {verb}".strip()).example)
    words = words[: words.index(">")] if ">" in words else words
    assert words[: 1 + len(verb.split())] == ["fairtune", *verb.split()]
    rest = words[1 + len(verb.split()) :]
    while rest and rest[0] in getattr(command, "commands", ()):
        command, rest = command.commands[rest[0]], rest[1:]
    with command.make_context("example", rest):
        pass  # unknown options and missing arguments are refused here


@pytest.mark.parametrize("verb", ["validate", "plan", "run", "time", "init", "data prepare"])
def test_verbs_that_read_a_study_end_with_where_its_fields_are(verb: str) -> None:
    assert "`fairtune help study`" in call(*verb.split(), "--help").output.splitlines()[-1]


def test_alone_it_says_what_to_do_first() -> None:
    answer = call()
    assert answer.exit_code == 0
    for words in ("fairtune run ", "--profile ", "fairtune init my.csv", "fairtune train my.csv", "--help"):
        assert words in answer.output
    assert len(answer.output.splitlines()) <= 20


def test_a_mistake_shows_how_the_verb_is_called() -> None:
    answer = call("run")
    assert answer.exit_code == 2
    assert "Usage: fairtune run FILE [OPTIONS]" in answer.output
    assert "Missing argument 'FILE'" in answer.output
    assert "Did you mean 'run'?" in call("runn").output


def test_a_group_alone_shows_its_verbs() -> None:
    assert call("data").output == call("data", "--help").output


def test_help_of_study_names_every_section_and_method() -> None:
    shown = call("help", "study").output
    sections = {doc.path.partition(".")[0] for doc in field_docs()}
    assert [name for name in sections if name not in shown] == []
    assert "--set train.epochs=2" in shown


@pytest.mark.parametrize("doc", field_docs(), ids=lambda doc: doc.path)
def test_every_field_has_a_page(doc: Any) -> None:
    answer = call("help", "study", doc.path)
    assert answer.exit_code == 0
    assert answer.output.splitlines()[0] == doc.path
    shown = " ".join(answer.output.split())
    assert doc.help.split(". ")[0] in shown
    if doc.allowed:
        assert f"Allowed: {doc.allowed}" in shown


@pytest.mark.parametrize(
    ("asked", "explained"),
    [
        ("arms", "arms.NAME"),
        ("arms.my-arm", "arms.NAME"),
        ("arms.orthogonal_qk", "orthogonal_qk"),
        ("arms.x.methods[0].focal.gamma", "focal.gamma"),
        ("methods.fgm", "fgm"),
        ("arms.x.lr", "train.lr"),
        ("tune.budget.epochs", "train.epochs"),
        ("profiles.demo.seeds", "seeds"),
        ("TRAIN.epochs", "train.epochs"),
    ],
)
def test_a_field_is_found_where_it_stands_in_a_file(asked: str, explained: str) -> None:
    assert find_fields(asked)[0].path == explained


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["study", "train.epoch"], "a study has no field 'train.epoch'. Did you mean 'train.epochs'?"),
        (["study", ""], "a study has no field ''"),
        (["rnu"], "there is no help on 'rnu'; topics are: init, "),
        (["data", "crad"], "Did you mean 'card'?"),
        (["run", "more"], "there is no help on 'run more'"),
    ],
)
def test_what_is_unknown_is_told_with_the_nearest(words: list[str], expected: str) -> None:
    answer = call("help", *words)
    assert answer.exit_code == 2
    assert expected in " ".join(answer.output.split())


def test_help_answers_with_json_too() -> None:
    assert {doc["path"] for doc in json.loads(call("help", "study", "--json").output)} > {"train.lr", *method_names()}
    assert json.loads(call("help", "study", "train.clip", "--json").output)[0]["default"] == "1"
    assert json.loads(call("help", "run", "--json").output)["example"].startswith("fairtune run ")
    assert "study" in json.loads(call("help", "--json").output)
    assert {kind["kind"] for kind in json.loads(call("help", "titles", "--json").output)}


def test_brackets_inside_a_value_are_closed() -> None:
    shown = CliRunner().invoke(app, ["check", "--help"]).output
    assert "--seeds K[,K]" in shown
    assert "--best-of K[,K]" in shown
