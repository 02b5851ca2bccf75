"""`fairtune claims`: every claim has an answer from whatever is on record, and the page reads the same wherever it is made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.report.made_ledger import QK, STUDY, TRAIN, ArmSpec, MadeLedger, make_study
from typer.testing import CliRunner

from fairtune.analysis.claim_answer import NOT_RUN
from fairtune.claims import answers
from fairtune.claims.answers import ClaimAnswer, ClaimLedger, answer_one
from fairtune.claims.page import claims_page
from fairtune.claims.published import ClaimFile, PublishedClaim
from fairtune.claims.trial_costs import is_of_trial
from fairtune.cli.app import app
from fairtune.study import source
from fairtune.study.study_file import load_study

FIGURES = {"baseline": [320, 322, 319, 321], "oelm-freeze": [280, 282, 279, 281]}


def call(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["claims", *words])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place with a shipped study whose runs a made ledger can stand for."""
    (tmp_path / "studies").mkdir()
    text = f"""
study: {STUDY}
task: sst2
model: minilm
train: {{epochs: 2, batch_size: 32, lr: 2e-5}}
seeds: 4
arms:
  baseline: {{}}
  oelm-freeze: {{}}
profiles:
  large: {{train: {{epochs: 20}}}}
"""
    (tmp_path / "studies" / "made.yaml").write_text(text)
    monkeypatch.setattr(source, "HOMES", (tmp_path,))
    monkeypatch.setattr(answers, "PROTOCOL", 1)
    return tmp_path


def make(home: Path, right: dict[str, list[Any]] | None = None) -> MadeLedger:
    found = right or FIGURES
    arms = {"baseline": ArmSpec(found["baseline"]), "oelm-freeze": ArmSpec(found["oelm-freeze"], methods=QK)}
    return make_study(home / "runs", arms, margin="1.5%")


def published(*asked: dict[str, Any], size: str = "laptop", profile: str | None = None, **more: Any) -> PublishedClaim:
    trial = {
        "study": STUDY, "file": "studies/made.yaml", "profile": profile, "size": size, "about": "MiniLM, 320 texts",
        "claims": list(asked) or [{"arm": "oelm-freeze", "worse_than": "baseline"}],
    }  # fmt: skip
    told = {"id": "c", "text": "It costs.", "claimed": "1 point", "evidence": "One seed.", "untried": "The rest."}
    return PublishedClaim.model_validate({**told, "trials": [trial], **more})


def answered(home: Path, claim: PublishedClaim) -> ClaimAnswer:
    return answer_one("mine", claim, ClaimLedger(home / "runs"))


def page_of(found: Sequence[ClaimAnswer]) -> str:
    claims = tuple(one.claim for one in found)
    return claims_page({"mine": ClaimFile(title="Mine", source="Somebody.", claims=claims)}, found)


def test_an_empty_runs_folder_says_what_each_claim_would_cost(tmp_path: Path) -> None:
    file = tmp_path / "claims.md"
    text = call("--runs", str(tmp_path / "runs"), "-o", str(file))
    assert "fairtune run studies/sst2-oelm.yaml --profile laptop-suite: 35 training runs, 1,390 optimizer steps" in text
    page = file.read_text(encoding="utf-8")
    assert "47 claims: 1 supported, 1 contradicted, 2 implausible, 43 not yet run." in page
    assert "| `fairtune run studies/gpt-tinystories.yaml` | at the published size | 27 training runs, 2,700,000" in page
    assert str(tmp_path) not in page
    found = json.loads(call("--runs", str(tmp_path / "runs"), "--json"))
    assert found["counts"]["not yet run"] == 43
    open_ones = [claim for claim in found["claims"] if claim["answer"] == NOT_RUN]
    assert all(trial["cost"]["runs"] for claim in open_ones for trial in claim["trials"])


def test_one_source_and_one_claim(tmp_path: Path) -> None:
    found = json.loads(call("--runs", str(tmp_path), "--only", "oelm/xnli-speed", "--json"))
    assert [(one["id"], one["answer"]) for one in found["claims"]] == [("oelm/xnli-speed", "implausible")]
    assert "Did you mean 'titles'" in call("--only", "title", code=2)
    narrow = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["claims", "--runs", str(tmp_path), "--only", "oelm"]).output
    assert "…" not in narrow, "names are to be typed"


def test_a_claim_is_answered_from_the_ledger(home: Path) -> None:
    make(home)
    found = answered(home, published())
    assert (found.word, found.grounds, found.direction_only) == ("supported", "laptop", True)
    page = page_of([found])
    assert "| −10.00 points (" in page
    assert "**supported**, the direction only, at laptop size" in page
    assert (
        "- At laptop size (MiniLM, 320 texts). Runs: `fairtune run studies/made.yaml`; figures: `fairtune claims --only mine/c`.\n"
        "  - oelm-freeze is worse than baseline (the direction only): supported. The direction is shown"
    ) in page
    assert "`fairtune:0.1.0|protocol:1|study:made|plan:0123456789abcdef|compared:oelm-freeze~baseline|metric:" in page
    assert "Not tried: The rest." in page
    assert page == page_of([answered(home, published())]), "the same for the same ledger"
    assert str(home) not in page


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ([{"arm": "oelm-freeze", "better_than": "baseline"}], "contradicted"),
        ([{"arm": "oelm-freeze", "worse_than": "baseline", "by": "9.9 points"}], "not separable"),
        ([{"arm": "oelm-freeze", "as_good_as": "baseline"}], "contradicted"),
        ([{"arm": "oelm-freeze", "faster": "1.05x"}], "not yet run"),
        ([{"arm": "oelm-freeze", "map_use": "92.6%"}], "not yet run"),
        ([{"arm": "oelm-freeze", "worse_than": "baseline"}, {"arm": "oelm-freeze", "frozen": "50%"}], "contradicted"),
        ([{"arm": "oelm-freeze", "worse_than": "baseline"}, {"arm": "oelm-freeze", "frozen": "10%"}], "supported"),
    ],
)
def test_all_that_is_asked_must_hold(home: Path, asked: list[dict[str, Any]], word: str) -> None:
    make(home)
    found = answered(home, published(*asked))
    assert found.word == word
    assert f"**{word}**" in page_of([found])


def test_several_figures_say_of_what_they_are_and_none_stands_twice(home: Path) -> None:
    make(home)
    lost = {"arm": "oelm-freeze", "worse_than": "baseline"}
    (both, _) = page_of([answered(home, published(lost, {"arm": "oelm-freeze", "frozen": "10%"}, lost))]).split(
        "## Mine"
    )
    assert both.count("oelm-freeze against baseline: −10.00 points (") == 1
    trials = [
        {**trial.model_dump(exclude_none=True), "about": about}
        for about in ("reviews", "news")
        for trial in published().trials
    ]
    (several, _) = page_of([answered(home, published(trials=trials))]).split("## Mine")
    assert "| reviews: −10.00 points (" in several
    assert "; news: −10.00 points (" in several


@pytest.mark.parametrize(
    ("words", "each", "average"),
    [
        (["better_than", "better_than"], "contradicted", "contradicted"),
        (["worse_than", "worse_than"], "supported", "supported"),
        (["better_than", "worse_than"], "contradicted", "not separable"),
        (["better_than", None], "contradicted", "not yet run"),
    ],
)
def test_a_claim_about_an_average_is_not_refuted_by_one_task(
    home: Path, words: list[str | None], each: str, average: str
) -> None:
    make(home)
    parts = [published({"arm": "oelm-freeze", word or "map_use": "baseline" if word else "9%"}) for word in words]
    trials = [trial.model_dump(exclude_none=True) for part in parts for trial in part.trials]
    assert answered(home, published(trials=trials)).word == each
    assert answered(home, published(trials=trials, over="average")).word == average


def test_what_is_beyond_a_bound_or_a_band_stays_implausible(home: Path) -> None:
    make(home)
    counted = {
        "model": "minilm", "arm": "oelm-freeze", "frozen": 1, "total": 10, "allowed": 1.05,
        "claim": {"arm": "oelm-freeze", "faster": "2x"},
    }  # fmt: skip
    found = answered(home, published(counted=counted))
    assert (found.word, found.grounds) == ("implausible", "counted")
    band = {"figure": "60%", "examples": 872, "like": [{"model": "minilm", "task": "sst2"}]}
    found = answered(home, published(band=band))
    assert (found.word, found.grounds) == ("implausible", "band")
    page = page_of([found])
    assert "below the lowest of its band" in page
    assert "measured −10.00 points" in page, "what was found all the same is not hidden"


def test_another_size_under_the_same_name_is_not_taken_for_it(home: Path) -> None:
    make(home)
    found = answered(home, published(size="published", profile="large"))
    assert (found.word, found.trials[0].other_trial) == (NOT_RUN, True)
    study = load_study(home / "studies" / "made.yaml")
    plan = {"model": {"name": "minilm"}, "arms": {"baseline": {"train": TRAIN}}}
    assert is_of_trial(plan, study, ["baseline"])
    assert not is_of_trial({**plan, "model": {"name": "bert"}}, study, ["baseline"])
    focal = {"train": TRAIN, "methods": [{"name": "focal"}]}
    assert not is_of_trial({**plan, "arms": {"baseline": focal}}, study, ["baseline"]), (
        "another method of the same name"
    )
    assert is_of_trial({**plan, "arms": {"baseline": focal}}, study, []), "which is not asked about"


def test_a_study_file_that_is_gone(home: Path) -> None:
    make(home)
    (home / "studies" / "made.yaml").unlink()
    found = answered(home, published())
    assert found.word == NOT_RUN
    assert "studies/made.yaml: no such file comes with fairtune" in found.trials[0].trouble
    assert "cannot be used" in page_of([found])


def test_an_arm_that_a_study_file_does_not_have(home: Path) -> None:
    found = answered(home, published({"arm": "oelm-frezze", "worse_than": "baseline"}))
    assert "arm 'oelm-frezze', which it does not have; its arms: baseline, oelm-freeze" in found.trials[0].trouble


def test_a_damaged_ledger_hides_no_other_claim(home: Path) -> None:
    made = make(home)
    (made.runs / STUDY / "study.json").write_text("{")
    counted = {
        "model": "minilm", "arm": "oelm-freeze", "frozen": 1, "total": 10, "allowed": 1.05,
        "claim": {"arm": "oelm-freeze", "frozen": "10%"},
    }  # fmt: skip
    damaged, sound = answered(home, published()), answered(home, published(counted=counted))
    assert damaged.word == NOT_RUN
    assert damaged.trials[0].trouble
    assert str(home) not in damaged.trials[0].trouble, "no place of this machine on the page"
    assert sound.word == "supported"


def test_runs_of_another_protocol(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(home)
    monkeypatch.setattr(answers, "PROTOCOL", 4)
    found = answered(home, published())
    assert found.word == NOT_RUN
    assert "made under protocol 1, and this fairtune has protocol 4" in page_of([found])


def test_an_unfinished_study_says_so(home: Path) -> None:
    make(home, {"baseline": [320, 322, 319, 321], "oelm-freeze": [280, 282, None, None]})
    found = answered(home, published())
    assert found.word == "not separable"
    assert "2 of 8 runs of these arms are still to come" in page_of([found])


def test_the_page_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = call("--only", "bpsom", "--runs", str(tmp_path / "runs"), "-o", str(tmp_path / "file" / "x.md"), code=2)
    assert "the page cannot be written" in said
