"""The list of a suite's studies: when it was fixed, what was changed since, and what that does to its verdicts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.report.made_suites import make_suite, planned

from fairtune.analysis.suite_cells import PlannedStudy
from fairtune.analysis.suite_registration import register_list
from fairtune.analysis.suite_verdict import SuiteVerdict, judge_suite
from fairtune.core.errors import LedgerError
from fairtune.ledger.studies import record_suite, suite_folder
from fairtune.report.suite import suite_html, suite_json, suite_markdown

GOOD, BAD = (20, 22, 18, 19), (-30, -34, -29, -31)
Finish = Callable[..., list[PlannedStudy]]
DAY = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, ...], Path]:
    """Four studies that gain, and the same four that lose; nobody changes them."""
    found = {}
    for gains in (GOOD, BAD):
        found[gains] = tmp_path_factory.mktemp("made") / "runs"
        make_suite(found[gains], dict.fromkeys("abcd", gains))
    return found


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def finish(made: dict[tuple[int, ...], Path], runs: Path) -> Finish:
    """Puts finished studies into the runs folder."""

    def put(tasks: str, gains: tuple[int, ...]) -> list[PlannedStudy]:
        for task in tasks:
            (runs / f"{task}-study").symlink_to(made[gains] / f"{task}-study")
        return [planned(f"{task}-study", task) for task in tasks]

    return put


def record(runs: Path, studies: list[PlannedStudy]) -> None:
    record_suite(runs, "made", [asdict(study) for study in studies])


def judge(runs: Path, studies: list[PlannedStudy]) -> SuiteVerdict:
    return judge_suite("made", studies, runs)


def word(found: SuiteVerdict) -> str:
    return found.words["accuracy"]["focal"]


def test_a_list_that_was_fixed_before_the_first_result_says_so(runs: Path, finish: Finish) -> None:
    studies = [planned(f"{task}-study", task) for task in "abc"]
    record(runs, studies)
    finish("abc", GOOD)
    found = judge(runs, studies)
    assert found.registration.fixed_before
    assert re.fullmatch(
        f"This list .* fixed on {DAY}, before any result of theirs was known.", found.registration.sentence
    )
    assert word(found) == "better"
    assert not found.remarks


def test_a_list_that_is_not_on_record_is_a_summary(runs: Path, finish: Finish) -> None:
    found = judge(runs, finish("abc", GOOD))
    assert not found.registration.fixed_before
    assert "a summary, not a test" in found.registration.sentence


def test_a_list_made_after_results_is_a_summary_with_its_date(runs: Path, finish: Finish) -> None:
    studies = finish("abc", GOOD)
    record(runs, studies)
    found = judge(runs, studies)
    assert not found.registration.fixed_before
    assert re.search(
        f"made on {DAY}, when 24 results were known: a summary of them, not a test", found.registration.sentence
    )
    assert word(found) == "better"


@pytest.mark.parametrize("again", [True, False], ids=["run again", "reported only"])
def test_a_task_left_out_after_its_results_takes_a_good_word_away(runs: Path, finish: Finish, again: bool) -> None:
    studies = [planned(f"{task}-study", task) for task in "abcd"]
    record(runs, studies)
    finish("abc", GOOD)
    finish("d", BAD)
    assert word(judge(runs, studies)) != "better"
    kept = studies[:3]
    if again:
        record(runs, kept)
    found = judge(runs, kept)
    assert word(found) == "not shown"
    assert "left out after results were known: d-study" in found.metrics[0].arms[0].verdict.note
    assert "changed after results were known" in found.registration.sentence
    when = DAY if again else "Not on record when"
    assert re.fullmatch(f"{when}, after 32 results were known: d-study was taken out", found.remarks[0])


def test_a_bad_word_stays_whatever_was_left_out(runs: Path, finish: Finish) -> None:
    studies = [planned(f"{task}-study", task) for task in "abcd"]
    record(runs, studies)
    finish("abc", BAD)
    finish("d", GOOD)
    assert word(judge(runs, studies[:3])) == "worse"


def test_a_task_that_nobody_ran_may_go(runs: Path, finish: Finish) -> None:
    record(runs, [planned(f"{task}-study", task) for task in "abcd"])
    studies = [planned(f"{task}-study", task) for task in "abc"]
    record(runs, studies)
    finish("abc", GOOD)
    found = judge(runs, studies)
    assert word(found) == "better"
    assert found.registration.fixed_before
    assert "before any result was known: d-study was taken out" in found.remarks[0]


def test_a_task_that_is_added_after_results_is_told(runs: Path, finish: Finish) -> None:
    studies = [planned(f"{task}-study", task) for task in "abc"]
    record(runs, studies)
    finish("abc", GOOD)
    more = [*studies, planned("d-study", "d")]
    record(runs, more)
    found = judge(runs, more)
    assert not found.registration.fixed_before
    assert "after 24 results were known: d-study was added" in found.remarks[0]


def test_other_lists_of_the_same_studies_are_named(runs: Path, finish: Finish) -> None:
    studies = [planned(f"{task}-study", task) for task in "abcd"]
    record(runs, studies[:3])
    for name, own in (("second", studies[1:]), ("third", [planned("e-study", "e")])):
        record_suite(runs, name, [asdict(study) for study in own])
    finish("abc", GOOD)
    found = judge(runs, studies[:3])
    assert found.remarks == ("Other suites on record have some of the same studies: second",)
    assert found.registration.fixed_before
    assert found.as_json()["registration"]["beside"] == ["second"]


def test_another_task_under_the_same_name_is_told(runs: Path) -> None:
    record(runs, [planned("a-study", "a")])
    found = register_list(runs, "made", [asdict(planned("a-study", "b"))])
    assert [str(change).partition(": ")[2] for change in found.changes] == ["the task of a-study changed from a to b"]


def test_the_same_list_is_recorded_once(runs: Path) -> None:
    studies = [planned("a-study", "a")]
    record(runs, studies)
    before = (suite_folder(runs, "made") / "history.json").read_bytes()
    record(runs, studies)
    assert (suite_folder(runs, "made") / "history.json").read_bytes() == before


@pytest.mark.parametrize("content", ["{}", "[", '{"history": 3}', '{"history": [{}], "sha256": "x"}'])
def test_a_damaged_record_is_named_and_never_taken_for_none(runs: Path, finish: Finish, content: str) -> None:
    studies = finish("abc", GOOD)
    file = suite_folder(runs, "made") / "history.json"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    with pytest.raises(LedgerError, match=r"history\.json"):
        record(runs, studies)
    found = judge(runs, studies)
    assert "cannot be told" in found.registration.sentence
    assert not found.registration.fixed_before
    assert file.read_text() == content


def test_every_page_says_it(runs: Path, finish: Finish) -> None:
    found = judge(runs, finish("abc", GOOD))
    for page in (suite_html(found), suite_markdown(found), suite_json(found), str(found)):
        assert "a summary, not a test" in page
