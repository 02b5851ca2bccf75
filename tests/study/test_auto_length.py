"""`max_length: auto`: a number from the plan on, the same run as the number written out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import tokenizer_folder
from fairtune.study.plan import Plan, make_plan
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study
from fairtune.tasks import load_task
from fairtune.tasks.card.lengths import measure_lengths
from tests.warm import light_run


@pytest.fixture
def source(tiny_model: Path, tiny_task: Any) -> dict[str, Any]:
    return {
        "study": "s",
        "task": tiny_task.as_study(),
        "model": str(tiny_model),
        "train": {"max_length": "auto"},
        "arms": {"baseline": {}, "oelm": {"methods": ["orthogonal_qk"]}},
        "seeds": 1,
    }


@pytest.fixture
def auto(tiny_model: Path, tiny_task: Any) -> int:
    task, model = load_task(tiny_task.as_study()), find_model(str(tiny_model))
    return measure_lengths(task, model.name, model.positions, tokenizer_folder(tiny_model)).covering


def plan(source: dict[str, Any], *overrides: str) -> Plan:
    return make_plan(load_study(source, overrides))


def lengths(made: Plan) -> dict[str, Any]:
    return {run.arm: run.settings.as_json()["train"]["max_length"] for run in made.runs}


def test_the_plan_holds_the_number_and_tells_why(source: dict[str, Any], auto: int) -> None:
    made = plan(source)
    assert lengths(made) == {"baseline": auto, "oelm": auto}
    found = json.loads(json.dumps(made.as_json()))
    assert found["arms"]["oelm"]["train"]["max_length"] == auto
    assert found["lengths"] == list(made.lengths)
    assert made.lengths[0].startswith(f"max_length auto: {auto} tokens cover 95 % of 200 training examples, and ")
    assert made.lengths[0].endswith(" % of 120 of validation and test")
    assert made.differences == ()


def test_it_is_the_same_run_as_the_number_written_out(source: dict[str, Any], auto: int) -> None:
    ours, written = plan(source), plan(source, f"train.max_length={auto}")
    assert ours.hash == written.hash
    assert [run.key for run in ours.runs] == [run.key for run in written.runs]
    assert [run.settings for run in ours.runs] == [run.settings for run in written.runs]
    assert written.lengths == ()
    assert plan(source, f"train.max_length={auto + 1}").hash != ours.hash


def test_an_arm_may_have_its_own_and_a_sample_changes_none(source: dict[str, Any], auto: int) -> None:
    made = plan(source, "train.max_length=40", "arms.oelm.max_length=auto", "train.examples=20")
    assert lengths(made) == {"baseline": 40, "oelm": auto}
    assert [(d.arm, d.setting, d.value, d.reference_value) for d in made.differences] == [
        ("oelm", "max_length", auto, 40)
    ]


def make_long(folder: Path, words: int) -> dict[str, Any]:
    for name, word in (("train", "film"), ("validation", "book"), ("test", "plot")):
        rows = "".join(f"{f'{word} ' * (words + i % 3)},l{i % 2}\n" for i in range(40))
        (folder / f"{name}.csv").write_text(f"text,label\n{rows}")
    return {"text": "text", **{name: str(folder / f"{name}.csv") for name in ("train", "validation", "test")}}


def test_it_ends_at_the_models_positions(source: dict[str, Any], tmp_path: Path) -> None:
    made = plan({**source, "task": make_long(tmp_path, 300)})
    assert lengths(made)["baseline"] == 128
    assert made.lengths == (
        "max_length auto: 128 tokens, all that the model takes, cover 0 % of 40 training examples, and 0 % of 80 of "
        "validation and test; 95 % would need 304",
    )


@pytest.mark.parametrize("value", ["aut", "3", "0", "-5", "12.5", "true", "[64]", "'64'"])
def test_what_is_neither_a_length_nor_auto_is_refused(source: dict[str, Any], value: str) -> None:
    for place in ("train", "arms.oelm"):
        with pytest.raises(StudyError, match="allowed: a whole number from 4 to 1,000,000, or `auto`") as caught:
            load_study(source, [f"{place}.max_length={value}"])
        assert len(caught.value.problems) == 1
        assert "Longest input in tokens" in str(caught.value)
    if value == "aut":
        assert "Did you mean 'auto'?" in str(caught.value)


def test_plan_prints_it_and_imports_no_torch_the_second_time(source: dict[str, Any], auto: int, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(yaml.safe_dump(source, sort_keys=False))
    code = (
        "import sys; from fairtune.cli.app import app\n"
        f"try: app(['plan', {str(file)!r}])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    done = light_run([sys.executable, "-c", code], text=True, timeout=120)
    assert f"max_length auto: {auto} tokens cover 95 % of 200 training examples" in done.stdout, done.stderr
    assert done.stdout.strip().endswith("[]"), "its lengths are in the cache"
    found = json.loads(CliRunner().invoke(app, ["plan", str(file), "--json"]).stdout)
    assert found["lengths"][0].startswith(f"max_length auto: {auto} tokens")
