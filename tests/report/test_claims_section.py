"""Claims of a study file at the top of its report: every answer, in every exporter, with when each was written."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from made_ledger import QK, STUDY, ArmSpec, MadeLedger, make_study
from made_timing import time_ledger
from typer.testing import CliRunner

from fairtune import load_results
from fairtune.analysis.study_claims import LATE, AnsweredClaim, study_claims
from fairtune.cli.app import app
from fairtune.core.console import Console
from fairtune.core.files import read_sealed, write_sealed
from fairtune.ledger.studies import HISTORY, read_claims, write_study
from fairtune.report.json_schema import shipped_schema
from fairtune.report.terminal import verdict_table
from fairtune.report.writer import write_report

GOOD = {"arm": "good", "better_than": "baseline", "by": "3 points"}
TOO_MUCH = {"arm": "good", "better_than": "baseline", "by": "25 points"}
OPEN = {"arm": "same", "better_than": "baseline"}
FASTER = {"arm": "good", "faster": "3x"}
LATER = {"arm": "later", "better_than": "baseline"}
CLAIMS = [GOOD, TOO_MUCH, OPEN, FASTER, LATER]
WORDS = ["supported", "contradicted", "not separable", "implausible", "not yet run"]


def study(runs: Path, claims: list[dict[str, Any]]) -> MadeLedger:
    arms = {
        "baseline": ArmSpec([320, 322, 319, 321, 320]),
        "good": ArmSpec([360, 362, 359, 361, 360], methods=QK),
        "same": ArmSpec([320, 325, 316, 322, 318], methods=[{"bitfit": {}}]),
        "later": ArmSpec([None] * 5, methods=[{"fgm": {}}]),
    }
    return make_study(runs, arms, margin="1.5%", claims=claims)


def change(made: MadeLedger, claims: list[dict[str, Any]]) -> list[AnsweredClaim]:
    """The study is run again with other claims: nothing is left to run, and its plan is recorded."""
    home = made.runs / STUDY
    plan = {name: value for name, value in read_sealed(home / "study.json").items() if name not in ("claims", "sha256")}
    write_study(home, {**plan, **({"claims": claims} if claims else {})})
    return study_claims(made.results())


@pytest.fixture(scope="module")
def claimed(tmp_path_factory: pytest.TempPathFactory) -> MadeLedger:
    made = study(tmp_path_factory.mktemp("claimed") / "runs", CLAIMS)
    time_ledger(made, {"baseline": 1.0, "good": 0.3, "same": 1.0}, frozen=("good",))
    return made


@pytest.fixture(scope="module")
def files(claimed: MadeLedger) -> dict[str, str]:
    return {kind: path.read_text() for kind, path in write_report(claimed.results()).items()}


def test_every_answer_in_the_order_of_the_file(claimed: MadeLedger) -> None:
    found = load_results(claimed.runs, STUDY).claims
    assert [one.word for one in found] == WORDS
    assert not any(one.late for one in found)
    assert str(found[0]).startswith("good is better than baseline by at least 3 points: supported. ")
    assert found[0].answer.figures is not None
    assert found[0].answer.figures.n == 5


def test_the_page_has_them_before_its_warnings_and_contents(files: dict[str, str]) -> None:
    page = files["html"]
    head = page[page.index("<h1>") : page.index("<nav")]
    assert head.index('class="opening"') < head.index('class="findings claims"') < head.index('class="facts"')
    places = [head.index(f'<span class="verdict {word.replace(" ", "-")}">{word}</span>') for word in WORDS]
    assert places == sorted(places)
    assert "Written before the first result" in head
    assert '<a href="#claims">Claims</a>' in page


def test_markdown_has_them_below_the_opening_sentence(files: dict[str, str]) -> None:
    text = files["markdown"]
    lines = text.splitlines()
    listed = [line for line in lines if line.startswith(tuple(f"- **{word}**: " for word in WORDS))]
    assert [line.split("**")[1] for line in listed] == WORDS
    assert lines.index(listed[0]) < 8
    assert "n = 5 seeds" in listed[0]
    assert "\n## Claims\n" in text


def test_json_has_them_as_data(files: dict[str, str]) -> None:
    found = json.loads(files["json"])
    jsonschema.validate(found, shipped_schema())
    assert [one["answer"] for one in found["claims"]] == WORDS
    first = found["claims"][0]
    assert first["claim"] == GOOD
    assert first["figures"]["value"] == pytest.approx(10)
    assert (first["known"], first["late"], first["taken_out"]) == (0, False, None)
    assert first["signature"].startswith("fairtune:")


def test_the_terminal_has_them_before_the_table(claimed: MadeLedger) -> None:
    out = Console(width=100, record=True, file=StringIO())
    out.print(verdict_table(claimed.results()))
    text = out.export_text()
    assert text.index("supported: good is better than baseline by at least 3 points") < text.index("plan: ")
    assert max(map(len, text.splitlines())) <= 100


def test_the_verdict_has_them_too(claimed: MadeLedger) -> None:
    words = ["verdict", STUDY, "--runs", str(claimed.runs)]
    assert "Claim, good is better than baseline" in CliRunner().invoke(app, words).output
    found = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    assert [one["answer"] for one in found["claims"]] == WORDS


def test_a_study_without_claims_says_nothing_of_them(tmp_path: Path) -> None:
    made = study(tmp_path, [])
    assert study_claims(made.results()) == []
    files = {kind: path.read_text() for kind, path in write_report(made.results(), ("html", "md", "json")).items()}
    assert json.loads(files["json"])["claims"] is None
    assert "laims" not in files["md"]
    assert '"claims"' not in (tmp_path / STUDY / HISTORY).read_text()


def test_a_claim_that_is_written_when_results_are_known_is_marked(tmp_path: Path) -> None:
    made = study(tmp_path, [])
    (found,) = change(made, [GOOD])
    assert found.word == "supported"
    assert found.late
    assert found.mark.startswith("Written after the results were known: ")
    assert "with 15 results on record" in found.mark
    assert f"supported. W{LATE[1:]}" in str(found), "it comes first"
    text = write_report(made.results(), ("md",))["md"].read_text()
    assert "Written after the results were known" in text.partition("<details>")[0]


def test_loosening_a_claim_does_not_help(tmp_path: Path) -> None:
    made = study(tmp_path, [TOO_MUCH])
    loosened, first = change(made, [GOOD])
    assert (loosened.word, loosened.late) == ("supported", True)
    assert "in place of: good is better than baseline by at least 25 points" in loosened.mark
    assert (first.word, first.late) == ("contradicted", False)
    assert "taken out on" in first.mark
    assert "with 15 results on record" in first.mark


def test_taking_a_claim_out_and_putting_it_back_dates_it_anew(tmp_path: Path) -> None:
    made = study(tmp_path, [GOOD])
    (taken,) = change(made, [])
    assert taken.written.taken_out is not None
    (back,) = change(made, [GOOD])
    assert back.late
    assert back.written.taken_out is None


def test_adding_one_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    made = study(tmp_path, [GOOD])
    assert [(one.word, one.late) for one in change(made, [GOOD, OPEN])] == [
        ("supported", False),
        ("not separable", True),
    ]
    assert [one.late for one in change(made, [OPEN, GOOD])] == [True, False], "their order says nothing"
    assert len(read_claims(tmp_path / STUDY)) == 3


def test_what_is_changed_before_any_result_is_no_change(tmp_path: Path) -> None:
    made = make_study(tmp_path, {"baseline": ArmSpec([None]), "good": ArmSpec([None], methods=QK)}, claims=[TOO_MUCH])
    (found,) = change(made, [GOOD])
    assert (found.word, found.late, found.written.instead_of) == ("not yet run", False, ())


def test_a_speed_claim_that_is_written_after_the_timing_is_marked(tmp_path: Path) -> None:
    made = make_study(tmp_path, {"baseline": ArmSpec([None]), "good": ArmSpec([None], methods=QK)})
    time_ledger(made, {"baseline": 1.0, "good": 0.98}, frozen=("good",))
    speed, quality = change(made, [{"arm": "good", "faster": "1x"}, GOOD])
    assert speed.late
    assert "no results and 1 timing session on record" in speed.mark
    assert not quality.late


def test_a_claim_about_an_arm_that_was_taken_out_is_told(tmp_path: Path) -> None:
    made = study(tmp_path, CLAIMS)
    home = made.runs / STUDY
    plan = {name: value for name, value in read_sealed(home / "study.json").items() if name != "sha256"}
    plan["arms"] = {name: arm for name, arm in plan["arms"].items() if name != "later"}
    plan["runs"] = [run for run in plan["runs"] if run["arm"] != "later"]
    write_study(home, {**plan, "plan": "fedcba9876543210"})
    found = study_claims(made.results())[-1]
    assert found.word == "not yet run"
    assert "later is not in the newest plan" in found.answer.reason


def test_a_plan_without_its_history_does_not_pass_for_registered(tmp_path: Path) -> None:
    made = study(tmp_path, [GOOD])
    home = made.runs / STUDY
    history = read_sealed(home / HISTORY)
    write_sealed(home / HISTORY, {"history": history["history"]})
    (found,) = study_claims(made.results())
    assert found.late
    assert found.mark == "Nothing says when it was written."


def test_what_another_version_wrote_is_left_out(tmp_path: Path) -> None:
    made = study(tmp_path, [GOOD, {"arm": "good", "prettier_than": "baseline"}])
    assert [one.word for one in study_claims(made.results())] == ["supported"]


@pytest.mark.usefixtures("undrawn")
def test_many_claims_do_not_push_the_rest_away(tmp_path: Path) -> None:
    many = [{"arm": "good", "better_than": "baseline", "by": f"{number} points"} for number in range(1, 13)]
    files = {kind: path.read_text() for kind, path in write_report(study(tmp_path, many).results()).items()}
    assert "\n- and 2 more, below\n" in files["markdown"]
    assert '<a href="#claims">and 2 more</a>' in files["html"]
    assert len(json.loads(files["json"])["claims"]) == 12


@pytest.mark.usefixtures("undrawn")
def test_what_was_written_late_or_taken_out_is_flagged_on_the_page(tmp_path: Path) -> None:
    made = study(tmp_path, [TOO_MUCH])
    change(made, [GOOD])
    page = write_report(made.results(), ("html",))["html"].read_text()
    assert page.count('<span class="flag">written after the results were known</span>') == 1
    assert page.count('<span class="flag">taken out</span>') == 1
