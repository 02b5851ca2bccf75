"""A report of some arms shows fewer rows, and nothing in them changes: no correction shrinks by looking away."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.report.made_ledger import MadeLedger, usual_ledger

from fairtune.analysis.selected_arms import only_arms
from fairtune.analysis.study_verdict import family_size
from fairtune.core.errors import FairtuneError
from fairtune.report.writer import EXPORTERS, make_content, write_report


@pytest.fixture
def made(tmp_path: Path) -> MadeLedger:
    return usual_ledger(tmp_path / "runs")


def test_the_arms_that_are_named_come_with_those_they_are_compared_with(made: MadeLedger) -> None:
    assert only_arms(made.results(), ["oelm-freeze"]).arms == ["baseline", "baseline-fast", "oelm-freeze"]
    assert only_arms(made.results(), ["focal"]).arms == ["baseline", "focal"]


def test_every_figure_is_that_of_the_whole_study(made: MadeLedger) -> None:
    whole = made.results()
    some = only_arms(whole, ["focal"])
    assert some.table().to_dict("index")["focal"] == whole.table().to_dict("index")["focal"]
    assert some.comparison("focal") == whole.comparison("focal")
    assert family_size(some) == family_size(whole) > len(some.comparisons)
    other = some.by("macro_f1")
    assert other.arms == some.arms
    assert other.comparison("focal") == whole.by("macro_f1").comparison("focal"), "also by another metric"
    assert family_size(other) == family_size(whole.by("macro_f1"))


def test_it_says_that_some_are_not_shown(made: MadeLedger) -> None:
    some = only_arms(made.results(), ["focal"])
    first = some.cautions[0]
    assert (first.grade, first.code) == ("warning", "some-arms")
    assert "2 of 5 arms are shown (baseline-fast, oelm-freeze, later left out with --arms)" in first.seen
    assert "corrected for all 4 comparisons" in first.why
    assert str(first) in str(some.verdict())
    assert "oelm-freeze:" not in str(some.verdict())


def test_every_format_can_show_them(made: MadeLedger, tmp_path: Path) -> None:
    some = only_arms(made.results(), ["focal"])
    assert [row.arm for row in make_content(some).rows] == ["baseline", "focal"]
    formats = [name for name in EXPORTERS if name != "latex"]  # which has a test of its own, as it draws figures
    written = write_report(some, formats, tmp_path / "some")
    assert set(written) == set(formats)
    page = written["html"].read_text(encoding="utf-8")
    assert "2 of 5 arms are shown" in page


def test_all_of_them_are_the_whole(made: MadeLedger) -> None:
    results = made.results()
    assert only_arms(results, None) is results
    assert only_arms(results, results.arms) is results


def test_an_unknown_name_gets_the_nearest(made: MadeLedger) -> None:
    with pytest.raises(FairtuneError, match=r"--arms: the study has no arm 'focl'; its arms: .*Did you mean 'focal'"):
        only_arms(made.results(), ["focl"])
