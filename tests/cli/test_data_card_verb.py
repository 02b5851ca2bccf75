"""`fairtune data card`: the card in words and as JSON, and clear words for tasks that are not there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.tasks.test_duplicates import SMALL, files
from tests.warm import light_run
from typer.testing import CliRunner

from fairtune.cli.app import app


def call(*words: object) -> Any:
    return CliRunner().invoke(app, ["data", "card", *map(str, words)], env={"COLUMNS": "120"})


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def task(tmp_path: Path) -> str:
    """A small task with every kind of duplicate, as the argument takes it."""
    return yaml.safe_dump(
        {"name": "small", **files(tmp_path, **SMALL)}, default_flow_style=True, width=10_000, allow_unicode=True
    ).strip()


def test_shows_splits_side_by_side_and_what_to_mind(task: str) -> None:
    answer = call(task)
    assert answer.exit_code == 0, answer.output
    shown = squeezed(answer.output)
    assert shown.startswith("small files train.csv, validation.csv, test.csv")
    assert "rows 8 4 3" in shown
    assert "class no 4 (50.0 %) 3 (75.0 %) 0" in shown
    assert "test training 1 of 3 33.3 % 0" in shown
    assert "training Disputed no 1, yes 1" in shown
    assert "1 of 3 test texts (33.3 %), 0 of them letter for letter, are also in the training split" in shown
    assert "`dedupe: true` would take out 5 training rows (1 also in the test split" in shown
    assert max(map(len, answer.output.splitlines())) <= 100


def test_dedupe_shows_what_is_left(task: str) -> None:
    shown = squeezed(call(task, "--dedupe").output)
    assert "rows 3 3 3" in shown
    assert "`dedupe: true` took out 5 training rows" in shown


def test_json_is_the_whole_card(task: str) -> None:
    card = json.loads(call(task, "--json").stdout)
    assert card["task"] == "small"
    assert card["splits"]["train"]["classes"] == {"no": 4, "yes": 4}
    assert card["overlaps"][0] == {
        "first": "train", "second": "test", "rows": 3, "exactly": 0, "shared": 1, "first_texts": None,
    }  # fmt: skip
    assert card["removal"]["contradictory"] == 2


def test_text_of_the_data_is_shown_as_it_is(tmp_path: Path) -> None:
    rows = [("[red]\x1b[31mbold", "no"), ("[RED]\x1b[31mbold", "yes"), ("plain words", "no")]
    spec = files(tmp_path, train=rows, validation=[("v", "no")], test=[("t", "yes")])
    answer = call(yaml.safe_dump(spec, default_flow_style=True, width=10_000))
    assert answer.exit_code == 0, answer.output
    assert r"[red]\x1b[31mbold" in answer.output
    assert "\x1b[31m" not in answer.output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["movie-review"], "Did you mean 'movie-reviews'?"),
        (["{train: a.csv, text: [a, b, c]}"], "text"),
        (["movie-reviews", "--train-on", "nothing"], "task 'nothing': not in the catalogue"),
        (["{train: missing.csv, text: text}"], "there is no such file"),
    ],
)
def test_mistakes_are_reported_in_a_sentence(words: list[str], expected: str) -> None:
    answer = call(*words)
    assert answer.exit_code == 2
    assert expected in answer.output
    assert "Traceback" not in answer.output


def test_help_needs_no_torch() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from fairtune.cli.app import app; "
        "answer = CliRunner().invoke(app, ['data', 'card', '--help']); assert '--dedupe' in answer.output, answer.output; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers', 'pyarrow', 'datasets', 'py3langid')))"
    )
    light_run([sys.executable, "-c", code], check=True, env={"COLUMNS": "120", "PATH": "/usr/bin"})
