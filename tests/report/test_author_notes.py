"""Notes of a study file: no part of the plan, and shown in the report as the author wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_ledger import STUDY, ArmSpec, make_study
from tests.hostile import ALL, raw_codes

from fairtune.core.files import read_json, write_sealed
from fairtune.report.writer import write_report
from fairtune.study.plan import make_plan
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study

SOURCE = {
    "study": "s", "task": "movie-reviews", "model": "minilm", "arms": {"baseline": {}}, "seeds": 2,
    "profiles": {"quick": {"notes": ["Quick."]}},
}  # fmt: skip


def test_notes_change_neither_plan_nor_runs() -> None:
    without, with_notes = (make_plan(load_study({**SOURCE, **more})) for more in ({}, {"notes": " Stable.\n"}))
    assert with_notes.hash == without.hash
    assert [run.signature for run in with_notes.runs] == [run.signature for run in without.runs]
    assert with_notes.as_json()["author_notes"] == ["Stable."]
    assert "author_notes" not in without.as_json()


def test_a_profile_may_have_notes_of_its_own() -> None:
    assert load_study({**SOURCE, "notes": ["Whole."]}, profile="quick").notes == ("Quick.",)


@pytest.mark.parametrize("notes", [3, "", " ", ["a", 3], {"a": "b"}])
def test_what_is_no_text_is_refused(notes: object) -> None:
    with pytest.raises(StudyError) as raised:
        load_study({**SOURCE, "notes": notes})
    assert all(problem.path.startswith("notes") for problem in raised.value.problems)


@pytest.mark.usefixtures("undrawn")
def test_a_report_shows_them_as_they_are(tmp_path: Path) -> None:
    made = make_study(tmp_path / "runs", {"baseline": ArmSpec([330, 331]), "arm": ArmSpec([340, 341])})
    assert json.loads(write_report(made.results())["json"].read_text())["author_notes"] is None
    file = made.runs / STUDY / "study.json"
    write_sealed(file, {**(read_json(file) or {}), "author_notes": ["<b>bold</b> *note*\n# two", ALL]})
    files = {kind: path.read_text() for kind, path in write_report(made.results()).items()}
    assert json.loads(files["json"])["author_notes"][0] == "<b>bold</b> *note*\n# two"
    assert "<b>bold" not in files["html"]
    assert "&lt;b&gt;bold&lt;/b&gt; *note*" in files["html"]
    assert "- \\<b\\>bold\\</b\\> \\*note\\*  \n  \\# two" in files["markdown"]
    assert raw_codes(files["html"]) == raw_codes(files["markdown"]) == []
