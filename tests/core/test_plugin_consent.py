"""Code that a study names runs only after the user allowed its file; reading results never runs it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import forget_plugins, performing_here
from tests.made_plugin import ADDS
from typer.testing import CliRunner

import fairtune
from fairtune.cli.app import app
from fairtune.core import plugins
from fairtune.core.plugins import ConsentNeeded, allowed_files
from fairtune.testing.runs import toy_source

pytestmark = pytest.mark.usefixtures("forgotten_plugins")


@pytest.fixture
def study(tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A downloaded study; its plug-in leaves a file when it is executed."""
    monkeypatch.setenv(plugins.STATE, str(tmp_path / "state"))
    folder = tmp_path / "download"
    folder.mkdir()
    leaves = f"from pathlib import Path\nPath({str(tmp_path / 'executed')!r}).write_text('')\n"
    (folder / "theirs.py").write_text(leaves + ADDS.format(name="nothing"))
    source = toy_source(tiny_model, tiny_task) | {"plugins": ["theirs"], "seeds": [0]}
    source["train"] |= {"epochs": 1, "examples": 16, "eval_examples": 20}
    source["arms"] = {"baseline": {}, "theirs": {"methods": ["nothing"]}}
    (folder / "study.yaml").write_text(yaml.safe_dump(source, sort_keys=False))
    return folder / "study.yaml"


def executed(study: Path) -> bool:
    return (study.parents[1] / "executed").exists()


def call(*words: str | Path) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.parametrize("verb", ["validate", "plan", "run", "time", "data prepare", "suite"])
def test_a_verb_names_the_file_and_executes_nothing(study: Path, verb: str) -> None:
    file = study
    if verb == "suite":
        file = study.with_name("suite.yaml")
        file.write_text("suite: some\nstudies: [study.yaml]\n")
    refused = call(*verb.split(), file)
    assert refused.exit_code == 2
    assert str(study.parent / "theirs.py") in refused.stderr
    assert "--allow-plugins" in refused.stderr
    assert not executed(study)
    assert not allowed_files()


def test_every_file_is_named_at_once(study: Path) -> None:
    (study.parent / "more.py").write_text(ADDS.format(name="more"))
    study.write_text(study.read_text().replace("- theirs\n", "- theirs\n- more.py\n", 1))
    with pytest.raises(ConsentNeeded) as needed:
        fairtune.load_study(study)
    assert [Path(file).name for file in needed.value.files] == ["theirs.py", "more.py"]


def test_an_allowed_file_is_asked_about_once_also_when_it_is_edited(study: Path) -> None:
    assert call("validate", study, "--allow-plugins").exit_code == 0
    assert executed(study)
    assert list(allowed_files()) == [str(study.parent / "theirs.py")]
    (study.parent / "theirs.py").write_text(ADDS.format(name="nothing") + "# edited\n")
    assert call("validate", study).exit_code == 0


def test_a_folder_cannot_bring_its_own_consent(study: Path) -> None:
    """Another user's history, shipped with the study, counts for nothing."""
    with performing_here():
        assert call("run", study, "--allow-plugins", "--runs", study.parent / "runs").exit_code == 0
    (study.parents[1] / "state" / "plugins.json").rename(study.parent / "plugins.json")
    (study.parents[1] / "executed").unlink()
    forget_plugins()
    assert call("run", study, "--runs", study.parent / "runs").exit_code == 2
    assert not executed(study)


@pytest.mark.usefixtures("undrawn")
def test_reading_results_executes_nothing(study: Path) -> None:
    runs = study.parent / "runs"
    with performing_here():
        assert call("run", study, "--allow-plugins", "--runs", runs).exit_code == 0
    (study.parents[1] / "executed").unlink()
    forget_plugins()
    for words in (["report"], ["status"], ["verify"], ["verdict"], ["watch", "--once"]):
        done = call(words[0], "toy", *words[1:], "--runs", runs)
        assert done.exit_code == 0, done.output
    assert not executed(study)


def test_in_python_the_caller_allows_it_or_imports_it_first(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConsentNeeded, match="allow_plugins=True"):
        fairtune.load_study(study)
    monkeypatch.syspath_prepend(study.parent)
    __import__("theirs")
    fairtune.load_study(study)
    assert not allowed_files(), "the user's own import is not remembered"


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2)])
def test_a_terminal_is_asked(study: Path, answer: str, code: int) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "fairtune", "validate", str(study)]
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    assert process.wait(timeout=120) == code
    shown = os.read(ours, 1 << 16).decode()
    assert str(study.parent / "theirs.py") in shown
    assert executed(study) == (answer == "y")
    assert json.dumps(list(allowed_files())) == json.dumps([str(study.parent / "theirs.py")] * (answer == "y"))
