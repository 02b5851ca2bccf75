"""The sentence that a report opens with says what the evidence supports, about methods first, and what to mind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from made_ledger import QK, ArmSpec, MadeLedger

from fairtune.analysis.opening_sentence import shorten_lists
from fairtune.core.cautions import Caution
from fairtune.report.content import ReportContent

FOCAL = [{"focal": {"gamma": 2.0}}]
MakeLedger = Callable[..., MadeLedger]


def opening(ledger: MadeLedger) -> str:
    return ledger.results().verdict().opening


def test_a_better_method_is_named_with_figure_interval_and_n(make_ledger: MakeLedger) -> None:
    said = opening(
        make_ledger({"baseline": ArmSpec([300, 302, 298]), "focal": ArmSpec([350, 353, 349], methods=FOCAL)})
    )
    assert said.startswith("focal is better than baseline by +12.67 points (95 %: +")
    assert "over 3 seeds" in said


def test_no_better_method_is_said_first_and_settings_get_no_method_s_praise(make_ledger: MakeLedger) -> None:
    arms = {
        "baseline": ArmSpec([300, 302, 298]),
        "fast": ArmSpec([350, 353, 349], lr=1e-4),
        "oelm": ArmSpec([310, 313, 309], lr=1e-4, methods=QK),
    }
    said = opening(make_ledger(arms, margin="1.5%"))
    assert said.startswith("No method is shown to be better than fast over 3 seeds; oelm is inferior;")
    assert "fast is better than baseline by its settings (lr), +12.67 points (95 % among 2: " in said
    assert "not by a method" in said


def test_an_unfinished_study_says_so_before_anything_else(make_ledger: MakeLedger) -> None:
    arms = {"baseline": ArmSpec([300, 302, None]), "focal": ArmSpec([350, 353, None], methods=FOCAL)}
    assert opening(make_ledger(arms)).startswith("4 of 6 runs are finished; so far ")


def test_nothing_finished_is_nothing_compared(make_ledger: MakeLedger) -> None:
    arms = {"baseline": ArmSpec([None, None]), "focal": ArmSpec([None, None], methods=FOCAL)}
    assert opening(make_ledger(arms)) == "None of 4 runs is finished: there is nothing to compare yet."


def test_failed_runs_are_counted_and_nothing_is_awaited_of_them(make_ledger: MakeLedger) -> None:
    nan = "the loss is nan"
    some = {"baseline": ArmSpec([300, 302, 298]), "focal": ArmSpec([350, nan, 349], methods=FOCAL)}
    assert opening(make_ledger(some)).startswith("1 of 6 runs failed; no method is shown")


def test_failed_runs_of_a_study_that_goes_on_are_counted(make_ledger: MakeLedger) -> None:
    some = {"baseline": ArmSpec([300, 302, None]), "focal": ArmSpec([350, "the loss is nan", None], methods=FOCAL)}
    assert opening(make_ledger(some)).startswith("3 of 6 runs are finished and 1 failed; so far ")


def test_where_every_run_failed_it_says_so(make_ledger: MakeLedger) -> None:
    arms = {"baseline": ArmSpec(["boom"] * 2), "focal": ArmSpec(["boom"] * 2, methods=FOCAL)}
    assert opening(make_ledger(arms)) == "All 4 runs failed: there is nothing to compare."


def test_no_run_to_compare_is_not_a_comparison_over_no_seeds(make_ledger: MakeLedger) -> None:
    arms = {"baseline": ArmSpec([300, 302]), "focal": ArmSpec(["boom"] * 2, methods=FOCAL)}
    said = opening(make_ledger(arms))
    assert said.startswith("2 of 4 runs failed; no method has a run that could be compared with one of baseline.")


def test_where_lower_is_better_a_negative_difference_is_explained(make_ledger: MakeLedger) -> None:
    arms = {"baseline": ArmSpec([300, 302, 298]), "focal": ArmSpec([350, 353, 349], methods=FOCAL)}
    said = opening(make_ledger(arms, metric="brier"))
    assert said.startswith("focal is better than baseline by −")
    assert " points (lower is better; 95 %: −" in said


def test_one_arm_alone_is_no_comparison(make_ledger: MakeLedger) -> None:
    assert "No two arms are compared." in opening(make_ledger({"baseline": ArmSpec([300, 302])}))


def test_of_many_arms_some_are_named_and_all_are_counted(make_ledger: MakeLedger) -> None:
    arms = {"baseline": ArmSpec([300, 302, 298])}
    arms |= {f"m{place}": ArmSpec([301, 300, 299], methods=[{"focal": {"gamma": place}}]) for place in range(9)}
    said = opening(make_ledger(arms))
    assert "m0, m1, m2 and 6 others are not separable" in said


def test_warnings_are_told_and_notes_are_not(content: ReportContent) -> None:
    head = content.sections["findings"]
    warned = [caution for caution in head.cautions if caution.grade != "note"]
    assert ("But mind: " in head.opening) == bool(warned)
    assert all(caution.grade != "note" or caution.seen not in head.opening for caution in head.cautions)


def test_a_long_list_of_arms_is_cut_and_a_short_one_is_not() -> None:
    assert shorten_lists("curves of a, b, c, d, e were rising") == "curves of a, b, c and 2 others were rising"
    assert shorten_lists("curves of a, b, c were rising") == "curves of a, b, c were rising"
    assert shorten_lists("at 3, 5, 8, 12, 20 seeds") == "at 3, 5, 8, 12, 20 seeds"


def test_the_verdict_page_opens_with_it(kept_ledger: MadeLedger) -> None:
    verdict = kept_ledger.results().verdict()
    assert str(verdict).splitlines()[2] == verdict.opening
    assert verdict.as_json()["opening"] == verdict.opening


@pytest.mark.parametrize("grade", ["warning", "refusal"])
def test_figures_in_brackets_stay_with_the_warning(grade: str) -> None:
    from fairtune.analysis.opening_sentence import _warnings

    (said,) = _warnings([Caution(grade, "code", "x does not beat y (+2 points, n = 3)", "why", "do")])  # type: ignore[arg-type]
    assert said == "But mind: x does not beat y."
