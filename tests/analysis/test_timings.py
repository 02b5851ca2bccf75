"""Times come from rounds in which arms take turns: ratios hold, noise is told from change, and nobody chooses a session."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.report.made_ledger import QK, STUDY, ArmSpec, MadeLedger, make_study
from tests.report.made_timing import made_session, time_ledger

from fairtune.analysis.block_ratios import block_ratio, lowest_rank
from fairtune.analysis.step_bounds import ClaimCheck
from fairtune.analysis.timing_file import comparison_json
from fairtune.analysis.timing_words import aa_sentence, effort_sentence, implausible_sentences, share_of_bound
from fairtune.analysis.timings import StudyTiming, judge_times
from fairtune.ledger.timings import FOLDER, read_sessions, write_session
from fairtune.report.evidence import OTHER_WORK, arm_rows

RIGHT = [330, 331, 329]
ARMS = {
    "baseline": ArmSpec(RIGHT),
    "oelm": ArmSpec(RIGHT, methods=QK),
    "other": ArmSpec(RIGHT, methods=[{"bitfit": {}}]),
}


@pytest.fixture
def made(tmp_path: Path) -> MadeLedger:
    return make_study(tmp_path / "runs", ARMS)


def timing_of(made: MadeLedger) -> StudyTiming:
    found = made.results().timing
    assert found is not None
    return found


# -- one ratio -------------------------------------------------------------------------------------------------------------


def test_the_interval_is_wilcoxons() -> None:
    """Critical values of the signed-rank test, two-sided, as tables have them (one more than the largest rank sum)."""
    assert [lowest_rank(n, 0.95) for n in (5, 6, 8, 10, 12, 15, 20, 25)] == [0, 1, 4, 9, 14, 26, 53, 90]
    assert [lowest_rank(n, 0.99) for n in (8, 10, 20)] == [1, 4, 38]
    assert lowest_rank(61, 0.95) == pytest.approx(lowest_rank(60, 0.95), rel=0.05), "the normal one goes on from there"


def test_too_few_rounds_have_no_interval_and_none_have_no_ratio() -> None:
    few = block_ratio([1.0] * 4, [2.0] * 4, 0.95)
    assert (few.ratio, few.low, few.high) == (pytest.approx(0.5), 0.0, float("inf"))
    assert few.holds_one
    assert block_ratio([], [], 0.95).n == 0


@pytest.mark.parametrize("heavy", [False, True])
def test_intervals_hold_the_truth_as_often_as_they_say(heavy: bool) -> None:
    draw, held, sessions = np.random.default_rng(1), 0, 400
    for _ in range(sessions):
        noise = draw.standard_t(2, (2, 12)) if heavy else draw.normal(size=(2, 12))
        drift = 1 + draw.random(12)  # the machine slows down and recovers, for both alike
        ours, theirs = 0.9 * drift * np.exp(0.05 * noise[0]), drift * np.exp(0.05 * noise[1])
        found = block_ratio(ours, theirs, 0.95)
        held += found.low <= 0.9 <= found.high
    assert held / sessions >= 0.95


def test_a_few_disturbed_rounds_do_not_move_it() -> None:
    theirs = np.full(30, 0.5)
    ours = 0.95 * theirs * np.exp(np.random.default_rng(0).normal(0, 0.01, 30))
    quiet = block_ratio(ours, theirs, 0.95)
    ours[:3] *= 20
    loud = block_ratio(ours, theirs, 0.95)
    assert loud.ratio == pytest.approx(quiet.ratio, abs=0.005)
    assert loud.high < 1


# -- a study -----------------------------------------------------------------------------------------------------------------


def test_arms_are_compared_with_the_arm_that_verdicts_compare_them_with(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.475, "other": 0.5}, frozen=("oelm",))
    timing = timing_of(made)
    found = timing.ratios["oelm"]
    assert (found.other, found.found.n) == ("baseline", 20)
    assert found.found.ratio == pytest.approx(0.95, abs=0.002)
    assert found.found.low < 0.95 < found.found.high
    assert found.bound == pytest.approx(283.4 / 300)
    assert found.change == pytest.approx(-0.05, abs=0.002)
    assert found.gap[0] == pytest.approx(-0.025, abs=0.001)
    assert found.gap[1] < found.gap[0] < found.gap[2] < 0
    assert timing.arms["oelm"].seconds == pytest.approx(0.475, abs=0.002)
    assert timing.arms["baseline"].parts["forward"] == pytest.approx(0.15, rel=0.01)
    assert timing.change("other") == 0.0, "no more than noise"
    assert timing.trusted
    assert timing.between("other", "oelm") is not None
    assert timing.between("other", "nobody") is None


def test_with_one_thread_on_a_cpu_the_time_that_others_took_does_not_count(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.5})
    assert timing_of(made).processor
    assert timing_of(made).arms["baseline"].seconds == pytest.approx(0.5, abs=0.002)


def test_several_threads_and_other_devices_go_by_the_clock_on_the_wall(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.5}, threads=2)
    assert not timing_of(made).processor
    assert timing_of(made).arms["baseline"].seconds == pytest.approx(1.0, abs=0.004)


def test_a_reference_unlike_itself_takes_all_verdicts_with_it(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.4}, again=1.1)
    timing = timing_of(made)
    assert not timing.trusted
    assert timing.change("oelm") is None
    assert "nothing follows" in aa_sentence(timing)
    comparison = made.results().comparison("oelm")
    assert comparison is not None
    assert comparison.slowdown is None


def test_faster_than_counting_allows_is_implausible_and_says_why(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.3}, frozen=("oelm",))
    timing = timing_of(made)
    assert timing.ratios["oelm"].implausible
    assert timing.change("oelm") is None
    (sentence,) = implausible_sentences(timing)
    assert "oelm takes 0.6" in sentence
    assert "Likely reasons" in sentence
    assert share_of_bound(timing) == []


def test_what_the_optimizer_saves_is_allowed_on_top_of_the_products(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.47}, frozen=("oelm",))
    found = timing_of(made).ratios["oelm"]
    assert found.floor is not None
    assert found.bound is not None
    assert found.floor < found.bound
    assert not found.implausible


def test_all_sessions_of_a_machine_count_so_that_nobody_chooses(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.5})
    time_ledger(made, {"baseline": 0.5, "oelm": 0.4}, time=1_800_000_100.0)
    timing = timing_of(made)
    assert (timing.sessions, timing.rounds, timing.elsewhere) == (2, 40, 0)
    assert 0.8 < timing.ratios["oelm"].found.ratio < 1
    assert "2 sessions, all counted" in effort_sentence(timing)


def test_other_machines_and_other_plans_do_not_count(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.1}, threads=4)
    time_ledger(made, {"baseline": 0.5, "oelm": 0.1}, key="another", time=1_800_000_050.0)
    time_ledger(made, {"baseline": 0.5, "oelm": 0.5}, time=1_800_000_100.0)
    timing = timing_of(made)
    assert (timing.sessions, timing.elsewhere) == (1, 1)
    assert timing.ratios["oelm"].found.ratio == pytest.approx(1, abs=0.01)


def test_an_arm_that_was_timed_under_other_settings_is_not_timed(made: MadeLedger) -> None:
    session = made_session({"baseline": 0.5, "oelm": 0.4})
    session["keys"]["oelm"] = "its settings were others"
    plan = made.results().plan
    found = judge_times(plan, [session])
    assert found is not None
    assert list(found.arms) == ["baseline"]
    assert judge_times(plan, []) is None


def test_damaged_sessions_are_named_and_left_out(made: MadeLedger) -> None:
    path = time_ledger(made, {"baseline": 0.5, "oelm": 0.4})
    path.write_text(path.read_text().replace("0.5", "0.6", 1))
    (path.parent / "note.json").write_text("{}")
    sessions, damaged = read_sessions(made.runs / STUDY)
    assert sessions == []
    assert sorted(name.split(":")[0] for name in damaged) == [f"{FOLDER}/{path.name}", f"{FOLDER}/note.json"]
    assert made.results().timing is None


def test_rounds_that_were_taken_apart_give_parts_but_no_ratio(made: MadeLedger) -> None:
    session = made_session({"baseline": 0.5, "oelm": 0.5}, device="cuda:0")
    for number, one in enumerate(session["rounds"]):
        one["apart"] = number % 4 == 0
    found = judge_times(made.results().plan, [session])
    assert found is not None
    assert found.rounds == 15
    assert not found.processor


def test_a_copied_session_counts_once(made: MadeLedger) -> None:
    path = time_ledger(made, {"baseline": 0.5, "oelm": 0.5})
    shutil.copy(path, path.with_name("again.json"))
    assert (timing_of(made).sessions, timing_of(made).rounds) == (1, 20)


def test_a_session_with_another_reference_does_not_count(made: MadeLedger) -> None:
    """Its A/A is that of another arm."""
    session = made_session({"oelm": 0.4, "baseline": 0.5})
    assert judge_times(made.results().plan, [session]) is None


def test_a_loose_measurement_shows_neither_a_change_nor_that_there_is_none(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.49}, noise=0.2, rounds=12)
    assert timing_of(made).ratios["oelm"].change is None
    assert timing_of(made).change("oelm") is None


def test_too_few_rounds_are_not_trusted(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.4}, rounds=3)
    assert not timing_of(made).trusted


def test_a_long_precise_session_is_not_distrusted_for_a_third_of_a_percent(made: MadeLedger) -> None:
    time_ledger(made, {"baseline": 0.5, "oelm": 0.48}, again=1.003, rounds=200, noise=0.001, frozen=("oelm",))
    assert timing_of(made).trusted
    assert "within 1 % of 1" in aa_sentence(timing_of(made))
    assert timing_of(made).change("oelm") == pytest.approx(-0.04, abs=0.005)


def test_runs_of_more_steps_are_compared_as_runs_and_their_steps_decide_nothing(made: MadeLedger) -> None:
    """Half the batch is half a step's time and twice the steps."""
    session = made_session({"baseline": 0.5, "other": 0.25})
    session["arms"]["other"]["steps"] = 40
    session["arms"]["other"]["costs"] = {}
    write_session(made.runs / STUDY, session)
    block = comparison_json(timing_of(made))["arms"]["other"]
    assert block["ratio"] == pytest.approx(0.5, abs=0.01)
    assert block["speedup_ratio"] == pytest.approx(1, abs=0.01)
    assert block["time_difference_seconds"] == pytest.approx(0, abs=0.1)
    found = next(row.versus for row in arm_rows(made.results()) if row.arm == "other")
    assert found is not None
    assert (found.time_change, found.untold) == (None, OTHER_WORK)


@pytest.mark.parametrize(
    ("stated", "possible", "words"), [(1.04, True, "Possible: "), (1.3, False, "4.2 times as much")]
)
def test_a_stated_speed_up_is_possible_or_not(stated: float, possible: bool, words: str) -> None:
    found = ClaimCheck("a-model", "an-arm", stated, before=18.0, after=17.0, frozen=0.1, counted_on="its sizes")
    assert found.possible is possible
    assert words in found.lines()[0]
    assert found.as_json()["savable_share"] == pytest.approx(1 / 18)


def test_more_products_cannot_be_faster() -> None:
    found = ClaimCheck("a-model", "fgm", 1.1, before=18.0, after=36.0, frozen=0.0, counted_on="its sizes")
    assert not found.possible
    assert "2.00 times as many" in found.lines()[0]
