"""Claims in a study file: what is refused when it is read, that they change no run and no hash, and what the plan says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.cli.plan import deciding_comparison
from fairtune.study.plan import Plan, make_plan
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study

ARMS: dict[str, Any] = {"baseline": {}, "fast": {"lr": 1e-4}, "oelm": {"lr": 1e-4, "methods": ["orthogonal_qk"]}}
BETTER = {"arm": "oelm", "better_than": "baseline", "by": "0.5%"}
FASTER = {"arm": "oelm", "faster": "1.3x"}


def problems(*claims: Any, **fields: Any) -> list[str]:
    study = {"study": "s", "task": "any", "model": "minilm", "arms": ARMS, "claims": list(claims), **fields}
    try:
        load_study(study)
    except StudyError as error:
        return [str(problem) for problem in error.problems]
    return []


def test_claims_of_every_kind_are_read() -> None:
    others = [
        {"arm": "oelm", "as_good_as": "baseline", "within": "1 points"},
        {"arm": "oelm", "frozen": "12.95%"},
        {"rank": ["oelm", "fast", "baseline"]},
        {"arm": "baseline", "faster": "1x", "than": "oelm"},
    ]
    assert problems(BETTER, FASTER, *others) == []


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        ({**BETTER, "arm": "olem"}, "claims[0].arm: no arm is called 'olem'; arms: baseline, fast, oelm. Did you mean 'oelm'?"),
        ({**BETTER, "better_than": "base"}, "claims[0].better_than: no arm is called 'base'"),
        ({"rank": ["oelm", "slow"]}, "claims[0].rank[1]: no arm is called 'slow'"),
        ({**FASTER, "than": "slow"}, "claims[0].than: no arm is called 'slow'"),
        ({**BETTER, "by": 0.5}, "claims[0].by: found 0.5; allowed: an amount with its unit: 0.5 points"),
        ({**FASTER, "faster": 1.3}, "claims[0].faster: found 1.3; allowed: a factor with its unit: 1.3x"),
        ({"arm": "oelm", "better_than": "oelm"}, "claims[0]: arm: oelm is compared with itself"),
        ({"arm": "oelm"}, "claims[0]: a claim makes one statement"),
        ({"arm": "oelm", "beter_than": "fast"}, "Did you mean 'better_than'?"),
        ({"arm": "oelm", "as_good_as": "fast"}, "claims[0].as_good_as: nothing says to within how much"),
        ({"arm": "baseline", "faster": "1.3x"}, "claims[0].faster: baseline is what the others are compared to"),
        ("oelm is better", "claims[0]: found 'oelm is better'"),
        (None, "claims[0]: found None"),
    ],
)  # fmt: skip
def test_what_cannot_be_claimed_is_told_with_its_place(claim: Any, told: str) -> None:
    (found,) = problems(claim)
    assert told in found


def test_what_depends_on_the_task() -> None:
    task = {"train": "a.csv", "text": "t", "label": "l"}
    assert "perplexity is for language models" in problems({**BETTER, "metric": "perplexity"}, task=task)[0]
    assert "log loss has no points" in problems({**BETTER, "by": "1 points"}, task=task, metric="log_loss")[0]
    assert problems({"arm": "oelm", "as_good_as": "fast"}, compare={"margin": "1%"}) == []


@pytest.fixture(scope="module")
def source(tiny_model: Path, tiny_task: Any) -> dict[str, Any]:
    return {"study": "s", "task": tiny_task.as_study(), "model": str(tiny_model), "arms": ARMS, "seeds": 3}


@pytest.fixture(scope="module")
def plans(source: dict[str, Any]) -> tuple[Plan, Plan]:
    return make_plan(load_study(source)), make_plan(load_study({**source, "claims": [BETTER, FASTER]}))


def test_claims_change_neither_hash_nor_keys_nor_the_rest_of_the_plan(plans: tuple[Plan, Plan]) -> None:
    without, claimed = (plan.as_json() for plan in plans)
    assert claimed.pop("claims") == [BETTER, FASTER]
    assert claimed == without, "the same hash, runs and keys: finished runs stay finished"


def test_the_plan_says_which_comparison_decides(source: dict[str, Any], plans: tuple[Plan, Plan]) -> None:
    plan = plans[1]
    better, faster = (deciding_comparison(claim, plan) for claim in plan.study.claims)
    assert better.startswith("decided by oelm against fast, which has its settings; baseline has not")
    assert faster.startswith("decided by oelm against fast, timed by `fairtune time`")
    arms = {**ARMS, "other": {"lr": 1e-4, "methods": ["focal"]}}
    claims = [
        {"arm": "oelm", "better_than": "fast"},
        {"arm": "fast", "better_than": "oelm"},
        {"arm": "oelm", "better_than": "other"},
        {"arm": "oelm", "frozen": "7%"},
        {"rank": ["oelm", "fast", "baseline"]},
    ]
    made = make_plan(load_study({**source, "arms": arms, "claims": claims}))
    found = [deciding_comparison(claim, made) for claim in made.study.claims]
    assert found[:2] == ["decided by oelm against fast, as planned"] * 2
    assert "which the plan does not compare" in found[2]
    assert found[3] == "counted when a run of it starts"
    assert found[4] == "decided by oelm against fast, as planned; fast against baseline, as planned"


def test_fairtune_plan_shows_them(source: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(json.dumps({**source, "claims": [BETTER]}))
    shown = CliRunner().invoke(app, ["plan", str(file), "--runs", str(tmp_path / "runs")]).output
    assert "oelm is better than baseline by at least 0.5%: decided by oelm against fast" in shown
