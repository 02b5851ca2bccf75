"""No foreign code: what a model's folder names to be run is refused, by every way in, whoever answers questions."""

from __future__ import annotations

import ast
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import fairtune
from fairtune.cli.app import app
from fairtune.core.errors import ModelError
from fairtune.models.loader import load_classifier, load_language_model
from fairtune.models.sources import ModelSource, find_model
from fairtune.models.tokenizers import TrainingText, find_tokenizer, load_tokenizer
from fairtune.models.transformers_files import read_config, read_tokenizer
from tests.execution.conftest import toy_source
from tests.models.hostile_models import make_hostile

LOADERS = {"from_pretrained", "from_config", "_from_config", "for_model"}
PICKLES = {"pickle", "torch.load", "joblib", "shelve", "marshal"}


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


@pytest.fixture
def yes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody, or some row of data, who says yes to every question."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 100))


@cache
def calls() -> frozenset[tuple[str, str]]:
    """Every name that the package calls or imports, with the file, of files that have any of the words."""
    source = Path(fairtune.__file__).parent
    found = set()
    for file in source.rglob("*.py"):
        text, place = file.read_text(encoding="utf-8"), file.relative_to(source).as_posix()
        if not any(word in text for word in (*LOADERS, *PICKLES)):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                found.add((place, ast.unparse(node.func)))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                found |= {(place, name.name) for name in node.names} | {(place, str(getattr(node, "module", "")))}
    return frozenset(found)


def test_one_file_alone_calls_the_loaders_of_transformers() -> None:
    found = [(file, call) for file, call in calls() if call.rpartition(".")[2] in LOADERS]
    assert {file for file, _ in found} == {"models/transformers_files.py"}, "use what is there"
    assert {call.rpartition(".")[2] for _, call in found} == LOADERS, "or this test looks for the wrong names"


def test_nothing_unpickles() -> None:
    assert not [(file, call) for file, call in calls() if call in PICKLES or call.startswith("pickle.")]


def answer(words: list[str], apart: bool) -> tuple[int, str]:
    """Exit code and everything that was said, to somebody who says yes."""
    if not apart:
        done = CliRunner().invoke(app, words, input="y\n" * 100)
        return done.exit_code, done.output
    started = [sys.executable, "-m", "fairtune", *words]
    finished = subprocess.run(started, input="y\n" * 100, capture_output=True, text=True, timeout=60, check=False)
    return finished.returncode, finished.stdout + finished.stderr


@pytest.mark.parametrize("verb", ["inspect", "plan", "run", "predict", "train"])
def test_no_verb_runs_it_though_standard_input_says_yes(model: Path, tiny_task: Any, tmp_path: Path, verb: str) -> None:
    mark = make_hostile(model)
    study = tmp_path / "study.yaml"
    source = {**toy_source(model, tiny_task), "arms": {"baseline": {}}}
    study.write_text(yaml.safe_dump(source))
    words = {
        "inspect": ["inspect", str(model)],
        "plan": ["plan", str(study)],
        "run": ["run", str(study), "--runs", str(tmp_path / "runs")],
        "predict": ["predict", str(model), "-"],
        "train": ["train", str(tiny_task.train), "--model", str(model), "-o", str(tmp_path / "out")],
    }
    code, said = answer(words[verb], apart=verb in ("inspect", "run"))
    assert code == 2, said
    assert "config.json names Python code to run (auto_map), which fairtune never does" in said
    assert "Traceback" not in said
    assert "[y/N]" not in said
    assert not mark.exists()


FILES = ("config.json", "tokenizer_config.json", "generation_config.json", "processor_config.json")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.usefixtures("yes")
def test_every_way_into_a_folder_refuses_it(model: Path, file: str) -> None:
    mark = make_hostile(model, file)
    source = ModelSource("model", "", str(model))  # as a worker gets it, after the folder was looked at
    text = TrainingText("none", lambda: iter(()))
    ways: list[Callable[[], object]] = [
        lambda: find_model(str(model)),
        lambda: load_classifier(source, ("a", "b")),
        lambda: load_language_model(source),
        lambda: load_tokenizer(model),
        lambda: read_config(model),
        lambda: read_tokenizer(model),
        lambda: find_tokenizer(str(model), source, text),
    ]
    for way in ways:
        with pytest.raises(ModelError, match=rf"its {file} names Python code to run \(auto_map\)"):
            way()
    assert not mark.exists()


@pytest.mark.parametrize("place", ["text_config", "layers"])
def test_code_is_found_however_deep_it_is_named(model: Path, place: str) -> None:
    config = json.loads((model / "config.json").read_text())
    named = {"auto_map": {"AutoConfig": "evil.Evil"}}
    (model / "config.json").write_text(json.dumps({**config, place: named if place == "text_config" else [[named]]}))
    with pytest.raises(ModelError, match="auto_map"):
        find_model(str(model))


def test_code_of_the_hub_is_refused_too(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "attn_implementation": "somebody/kernel"}))
    with pytest.raises(ModelError, match=r"config\.json asks for code from the hub \(attn_implementation\)"):
        find_model(str(model))


@pytest.mark.usefixtures("yes")
def test_a_run_of_a_folder_that_turned_hostile_fails_with_the_reason(
    tiny_task: Any, model: Path, tmp_path: Path
) -> None:
    from tests.execution.conftest import ToyStudy, perform_here

    job = ToyStudy(toy_source(model, tiny_task), tmp_path).job("runs", steps=1)
    mark = make_hostile(model)
    result = perform_here(job)
    assert (result["status"], result["kind"]) == ("failed", "input")
    assert "names Python code to run (auto_map)" in result["reason"]
    assert not mark.exists()


ASK = """
try:
    asked = input()
except EOFError:
    asked = None
"""
PIPE = f"""
import os
from fairtune.core.console import own_pipes
inbox, outbox = own_pipes()
{ASK}
os.write(outbox, repr((asked, os.read(inbox, 99))).encode())
"""
ROWS = f"""
import os, sys
from fairtune.classifier.prediction import _hide_stdio as hide_stdio
rows = sys.stdin
first = rows.readline()
with hide_stdio():
    os.write(1, b"noise")
    print("noise")
    {ASK.replace(chr(10), chr(10) + "    ")}
    at_file = os.read(0, 99)
print(repr((asked, at_file + (first + rows.read()).encode())), end="")
"""


@pytest.mark.parametrize("code", [PIPE, ROWS], ids=["a worker's jobs", "a command's rows"])
def test_a_question_gets_no_answer_from_what_is_meant_for_the_process(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], input=b"y\nn\ny\n", capture_output=True, timeout=60, check=True)
    assert done.stdout == repr((None, b"y\nn\ny\n")).encode(), "nobody else read of it, and nothing is lost"
