"""`fairtune check` as it is typed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from fairtune.cli.app import app


def call(*words: str) -> Any:
    return CliRunner().invoke(app, ["check", *words])


def test_the_answer_comes_before_its_reasons() -> None:
    answer = call("93.12 vs 91.28", "--n", "872", "--seeds", "1")
    assert answer.exit_code == 0
    lines = answer.output.splitlines()
    assert lines[0] == "93.12 vs 91.28: accuracy, 872 test examples, one run each"
    assert lines[2].startswith("These two figures alone")
    assert "  93.12: 812 correct of 872 = 93.1193 %." in lines


def test_quotes_are_not_needed() -> None:
    assert call("93.12", "vs", "91.28", "--task", "sst2").output == call("93.12 vs 91.28", "--task", "sst2").output


def test_as_data() -> None:
    found = json.loads(call("93.15 vs 91.28", "--n", "872", "--seeds", "5,1", "--best-of", "1, 3", "--json").output)
    assert found["seeds"] == [5, 1]
    assert found["best_of"] == [1, 3]
    assert [one["possible"] for one in found["possible"]] == [False, True]
    assert found["difference"] == pytest.approx(1.87)
    assert found["answer"] in ("cannot tell", "depends")
    assert found["not_known"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("119 vs 91.28", "--n", "872"), "119 is not possible"),
        (("93.12 vs 91.28",), "how many test examples?"),
        (("93.12 vs 91.28", "--n", "872", "--seeds", "many"), "--seeds: found 'many'; give a whole number"),
        (("93.12 vs 91.28", "--n", "872", "--seeds", "0"), "--seeds: found 0"),
        (("93.12 vs 91.28", "--n", "872", "--best-of", "1,2,3"), "--best-of: found '1,2,3'"),
        (("better vs worse", "--n", "872"), "is not one figure or two"),
        (("93.12 vs 91.28", "--n", "x"), "--n"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(words: tuple[str, ...], told: str) -> None:
    answer = call(*words)
    assert answer.exit_code == 2
    assert told in " ".join(answer.output.split())
    assert "Traceback" not in answer.output
