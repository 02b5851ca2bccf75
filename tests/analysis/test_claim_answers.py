"""Every answer that a claim of each kind can get, on small made ledgers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.report.made_ledger import QK, STUDY, ArmSpec, MadeLedger, make_study
from tests.report.made_text_ledger import TextArm, make_text_study
from tests.report.made_timing import time_ledger

from fairtune.analysis import claimed_costs
from fairtune.analysis.claim_answer import Answer
from fairtune.analysis.claim_answers import answer_claims
from fairtune.analysis.results import Results
from fairtune.core.errors import FairtuneError
from fairtune.core.files import read_sealed
from fairtune.ledger.studies import write_study
from fairtune.settings.claims import Claim

FOCAL = [{"focal": {"gamma": 2.0}}]


def ask(made: Any, **claim: Any) -> Answer:
    results = made if isinstance(made, Results) else made.results()
    (found,) = answer_claims(results, [Claim(**claim)])
    return found


@pytest.fixture(scope="module")
def clear(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """`good` gains ten points, `bad` loses ten, `same` is at most a little off, `mixed` has another rate without a control."""
    arms = {
        "baseline": ArmSpec([320, 322, 319, 321, 320]),
        "good": ArmSpec([360, 362, 359, 361, 360], methods=QK),
        "bad": ArmSpec([280, 282, 279, 281, 280], methods=FOCAL),
        "same": ArmSpec([320, 325, 316, 322, 318], methods=[{"bitfit": {}}]),
        "mixed": ArmSpec([370, 372, 369, 371, 370], lr=1e-4, methods=QK),
    }
    return make_study(tmp_path_factory.mktemp("clear") / "runs", arms, margin="1.5%").results()


@pytest.mark.parametrize(
    ("claim", "word"),
    [
        ({"arm": "good", "better_than": "baseline"}, "supported"),
        ({"arm": "good", "better_than": "baseline", "by": "3 points"}, "supported"),
        ({"arm": "good", "better_than": "baseline", "by": "10 points"}, "not separable"),
        ({"arm": "good", "better_than": "baseline", "by": "25 points"}, "contradicted"),
        ({"arm": "good", "better_than": "baseline", "by": "10 points", "reading": "about"}, "supported"),
        ({"arm": "good", "better_than": "baseline", "by": "1 points", "reading": "about"}, "contradicted"),
        ({"arm": "good", "better_than": "baseline", "by": "25 points", "reading": "about"}, "contradicted"),
        ({"arm": "good", "worse_than": "baseline"}, "contradicted"),
        ({"arm": "good", "worse_than": "baseline", "by": "1 points", "reading": "about"}, "contradicted"),
        ({"arm": "bad", "worse_than": "baseline", "by": "3 points"}, "supported"),
        ({"arm": "bad", "worse_than": "baseline", "by": "10 points", "reading": "about"}, "supported"),
        ({"arm": "same", "better_than": "baseline"}, "not separable"),
        ({"arm": "same", "better_than": "baseline", "by": "1 points", "reading": "about"}, "not separable"),
        ({"arm": "same", "better_than": "baseline", "by": "20 points", "reading": "about"}, "contradicted"),
        ({"arm": "baseline", "better_than": "bad", "by": "3 points"}, "supported"),
        ({"arm": "baseline", "better_than": "good"}, "contradicted"),
        ({"arm": "good", "better_than": "bad", "by": "5 points"}, "supported"),
        ({"arm": "bad", "better_than": "good"}, "contradicted"),
        ({"arm": "mixed", "better_than": "baseline"}, "not separable"),
        ({"arm": "mixed", "worse_than": "baseline", "by": "20 points"}, "not separable"),
        ({"arm": "mixed", "better_than": "bad"}, "not separable"),
        ({"arm": "good", "as_good_as": "baseline"}, "supported"),
        ({"arm": "bad", "as_good_as": "baseline"}, "contradicted"),
        ({"arm": "same", "as_good_as": "baseline", "within": "15 points"}, "supported"),
        ({"arm": "same", "as_good_as": "baseline", "within": "0.1 points"}, "not separable"),
        ({"arm": "baseline", "as_good_as": "good", "within": "1 points"}, "contradicted"),
        ({"arm": "baseline", "as_good_as": "bad"}, "supported"),
        ({"rank": ("good", "baseline", "bad")}, "supported"),
        ({"rank": ("bad", "baseline", "good")}, "contradicted"),
        ({"rank": ("good", "same", "baseline")}, "not separable"),
        ({"arm": "good", "frozen": "10%"}, "supported"),
        ({"arm": "good", "frozen": "10.0%"}, "supported"),
        ({"arm": "good", "frozen": "12.95%"}, "contradicted"),
        ({"arm": "good", "better_than": "baseline", "metric": "f1"}, "supported"),
    ],
)
def test_answers(clear: Results, claim: dict[str, Any], word: str) -> None:
    found = ask(clear, **claim)
    assert found.word == word, str(found)
    assert found.signature.startswith(f"fairtune:0.1.0|protocol:1|study:{STUDY}|plan:0123456789abcdef|compared:")
    assert found.as_json()["answer"] == word


def test_figures_have_n_metric_and_both_intervals(clear: Results) -> None:
    found = ask(clear, arm="bad", worse_than="baseline")
    figures = found.figures
    assert figures is not None
    assert (figures.value, figures.unit, figures.n) == (pytest.approx(-10), "points", 5)
    assert (figures.n_of, figures.metric, figures.against) == ("seeds", "accuracy", "baseline")
    assert figures.low is not None
    assert figures.high is not None
    assert figures.alone[0] is not None
    assert figures.low < figures.alone[0] < -10 < figures.high < 0, "the family's interval is the wider one"
    assert "−10.00 points of accuracy against baseline" in str(found)
    turned = ask(clear, arm="baseline", better_than="bad").figures
    assert turned is not None
    assert (turned.arm, turned.against, turned.value) == ("baseline", "bad", pytest.approx(10))
    assert turned.low == pytest.approx(-figures.high)


def test_a_comparison_without_the_familys_interval_is_shown_with_its_own(clear: Results) -> None:
    figures = ask(clear, arm="mixed", better_than="baseline").figures
    assert figures is not None
    assert figures.low is None
    assert " (alone: " in figures.short
    assert figures.short.endswith("n = 5 seeds)")


def test_another_metric_than_the_plans_is_named(clear: Results) -> None:
    notes = ask(clear, arm="good", better_than="baseline", metric="f1").notes
    assert any("F1 is not among the metrics that the plan names" in note for note in notes)
    assert not ask(clear, arm="good", better_than="baseline", metric="accuracy").notes


def test_an_amount_in_percent_is_a_share_of_the_other_arms_mean(clear: Results) -> None:
    low = ask(clear, arm="good", better_than="baseline").figures
    assert low is not None
    assert low.low is not None
    reached = 100 * low.low / 80.1  # the baseline's mean accuracy is 80.1
    assert ask(clear, arm="good", better_than="baseline", by=f"{reached - 0.1:.2f}%").word == "supported"
    assert ask(clear, arm="good", better_than="baseline", by=f"{reached + 0.1:.2f}%").word == "not separable"


def test_an_open_claim_says_what_it_would_take(clear: Results) -> None:
    assert ask(clear, arm="same", better_than="baseline").needed
    assert "seed" in ask(clear, arm="good", better_than="baseline", by="7 points").needed
    assert not ask(clear, arm="good", better_than="baseline").needed


def test_an_unfair_comparison_says_what_is_mixed(clear: Results) -> None:
    found = ask(clear, arm="mixed", better_than="baseline")
    assert "method and lr cannot be told apart" in found.reason


def test_an_arm_is_compared_with_its_control_whatever_the_claim_names(tmp_path: Path) -> None:
    arms = {
        "baseline": ArmSpec([320, 322, 319]),
        "fast": ArmSpec([360, 362, 359], lr=1e-4),
        "method": ArmSpec([361, 361, 360], lr=1e-4, methods=QK),
    }
    found = ask(make_study(tmp_path / "runs", arms), arm="method", better_than="baseline", by="5 points")
    assert found.word == "contradicted", "the rate did it"
    assert "compared with fast, which has its settings; baseline has not" in found.reason


def test_a_claim_about_an_arm_that_is_not_there(clear: Results) -> None:
    with pytest.raises(FairtuneError, match=r"arm 'goood', which study 'made' does not have; its arms: .*'good'"):
        ask(clear, arm="goood", better_than="baseline")


def test_as_good_as_needs_a_margin(tmp_path: Path) -> None:
    made = make_study(tmp_path / "runs", {"baseline": ArmSpec([320] * 3), "a": ArmSpec([320] * 3, methods=QK)})
    with pytest.raises(FairtuneError, match="nothing says to within how much"):
        ask(made, arm="a", as_good_as="baseline")


def test_runs_of_another_protocol_are_not_counted(clear: Results) -> None:
    (found,) = answer_claims(clear, [Claim(arm="good", better_than="baseline")], protocol=4)
    assert found.word == "not yet run"
    assert "under protocol 1, and this fairtune has protocol 4" in found.reason


def test_waiting_failed_and_few_runs(tmp_path: Path) -> None:
    arms = {
        "baseline": ArmSpec([320, 322, 319, 321]),
        "later": ArmSpec([None] * 4, methods=FOCAL),
        "some": ArmSpec([360, 361, None, None], methods=[{"bitfit": {}}]),
        "failed": ArmSpec([360, 362, "out of memory", 361], methods=QK),
        "shaky": ArmSpec([322, 321, "out of memory", 322], methods=[{"label_smoothing": {}}]),
    }
    made = make_study(tmp_path / "runs", arms)
    assert ask(made, arm="later", better_than="baseline").word == "not yet run"
    assert ask(made, arm="later", frozen="10%").word == "not yet run"
    assert ask(made, rank=("later", "baseline")).word == "not yet run"
    some = ask(made, arm="some", better_than="baseline")
    assert some.word == "not separable", "two seeds are too few"
    assert any("2 of 8 runs of these arms are still to come" in note for note in some.notes)
    failed = ask(made, arm="failed", better_than="baseline")
    assert any("failed/seed-2" in note for note in failed.notes)
    assert failed.word == "supported", "as verdicts count it: also with that run as the worst of its arm"
    open_one = ask(made, arm="shaky", better_than="baseline", by="30 points")
    assert open_one.word == "not separable", "else a failure would contradict"
    assert "shaky/seed-2" in open_one.reason


def test_a_control_that_did_not_learn_contradicts_nothing(tmp_path: Path) -> None:
    arms = {"baseline": ArmSpec([200, 200, 200]), "method": ArmSpec([200, 200, 200], methods=QK)}
    made = make_study(tmp_path / "runs", arms)
    for seed in range(3):
        made.predict("baseline", seed, 200)
    found = ask(made, arm="method", better_than="baseline", by="40 points")
    assert found.word == "not separable"
    assert "baseline did not learn" in found.reason


def test_plans_that_were_changed_are_mentioned(tmp_path: Path) -> None:
    made = make_study(tmp_path / "runs", {"baseline": ArmSpec([320] * 3), "a": ArmSpec([350] * 3, methods=QK)})
    plan = read_sealed(made.runs / STUDY / "study.json")
    assert plan is not None
    plan = {name: value for name, value in plan.items() if name != "seal"}
    write_study(made.runs / STUDY, {**plan, "plan": "f" * 16, "compare": {**plan["compare"], "margin": "3%"}})
    found = ask(made, arm="a", better_than="baseline")
    assert any("the plan was changed" in note for note in found.notes), found.notes


# -- perplexity --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Results:
    arms = {"baseline": TextArm([1.45, 1.46, 1.44]), "worse": TextArm([1.55, 1.56, 1.54], methods=QK)}
    return make_text_study(tmp_path_factory.mktemp("text") / "runs", arms).results()


@pytest.mark.parametrize(
    ("claim", "word"),
    [
        ({"arm": "worse", "worse_than": "baseline", "by": "10.5%", "reading": "about"}, "supported"),
        ({"arm": "worse", "worse_than": "baseline", "by": "50%", "reading": "about"}, "contradicted"),
        ({"arm": "worse", "worse_than": "baseline", "by": "5%"}, "supported"),
        ({"arm": "worse", "better_than": "baseline"}, "contradicted"),
        ({"arm": "worse", "as_good_as": "baseline", "within": "5%"}, "contradicted"),
        ({"arm": "worse", "as_good_as": "baseline", "within": "20%"}, "supported"),
    ],
)
def test_perplexities_are_compared_by_their_ratio(text: Results, claim: dict[str, Any], word: str) -> None:
    found = ask(text, **claim)
    assert found.word == word, str(found)
    assert found.figures is not None
    assert (found.figures.unit, found.figures.value) == ("%", pytest.approx(10.5, abs=0.1))


def test_a_perplexity_has_no_points(text: Results) -> None:
    with pytest.raises(FairtuneError, match="perplexity is not in hundredths"):
        ask(text, arm="worse", worse_than="baseline", by="1 points")
    with pytest.raises(FairtuneError, match="has no points"):
        ask(text, arm="worse", as_good_as="baseline", within="1 points")


# -- speed -------------------------------------------------------------------------------------------------------------------


def timed(runs: Path, seconds: dict[str, float], **more: Any) -> MadeLedger:
    made = make_study(runs, {"baseline": ArmSpec([320] * 3), "oelm": ArmSpec([320] * 3, methods=QK)})
    time_ledger(made, {"baseline": 0.5, **seconds}, **more)
    return made


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return timed(tmp_path_factory.mktemp("quick") / "runs", {"oelm": 0.475}, frozen=("oelm",)).results()


@pytest.mark.parametrize(
    ("factor", "reading", "word"),
    [
        ("1.03x", "at least", "supported"),
        ("1.0526x", "at least", "not separable"),
        ("1.058x", "at least", "contradicted"),
        ("1.0526x", "about", "supported"),
        ("1.02x", "about", "contradicted"),
        ("2.35x", "about", "implausible"),
        ("1.3x", "at least", "implausible"),
    ],
)
def test_speed(quick: Results, factor: str, reading: str, word: str) -> None:
    found = ask(quick, arm="oelm", faster=factor, reading=reading)
    assert found.word == word, str(found)
    assert found.figures is not None
    assert (found.figures.unit, found.figures.n, found.figures.n_of) == ("x", 20, "rounds")
    assert found.figures.value == pytest.approx(1.0526, abs=0.003)


def test_speed_that_was_not_timed_or_not_well(tmp_path: Path) -> None:
    plain = make_study(tmp_path / "plain", {"baseline": ArmSpec([320] * 3), "oelm": ArmSpec([320] * 3, methods=QK)})
    assert ask(plain, arm="oelm", faster="1.05x").word == "not yet run", "the runs' own clocks are not asked"
    counted = ask(plain, arm="oelm", faster="1.3x")
    assert counted.word == "implausible", "the cards of finished runs have counted what a step is made of"
    assert "x at the most" in counted.reason
    (bound,) = answer_claims(plain.results(), [Claim(arm="oelm", faster="2.35x")], allowed=1.059)
    assert bound.word == "implausible", "whatever is measured"
    noisy = timed(tmp_path / "noisy", {"oelm": 0.475}, again=1.2, frozen=("oelm",))
    assert ask(noisy, arm="oelm", faster="1.01x").word == "not separable"
    assert "A/A" in ask(noisy, arm="oelm", faster="1.01x").reason
    beyond = timed(tmp_path / "beyond", {"oelm": 0.25}, frozen=("oelm",))
    assert ask(beyond, arm="oelm", faster="1.01x").word == "not separable"
    assert "faster than counted work allows" in ask(beyond, arm="oelm", faster="1.01x").reason
    with pytest.raises(FairtuneError, match="say than which arm"):
        ask(plain, arm="baseline", faster="1.05x")


# -- maps --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "word"),
    [
        ([[0.0, 0.93], [0.0, 0.92], [0.1, 0.93]], "supported"),
        ([[0.0, 0.31], [0.0, 0.33], [0.0, 0.30]], "contradicted"),
        ([[0.0, 0.93], [], []], "not separable"),
        ([[0.0, 0.93], [0.0, 0.44], []], "not separable"),
        ([[], [], []], "not yet run"),
    ],
)
def test_how_often_a_map_was_used(
    clear: Results, monkeypatch: pytest.MonkeyPatch, used: list[list[float]], word: str
) -> None:
    waiting = [*used, [], []]
    monkeypatch.setattr(claimed_costs, "map_passes", lambda _: [SimpleNamespace(use=share) for share in waiting.pop(0)])
    found = ask(clear, arm="good", map_use="92.6%")
    assert found.word == word, str(found)
    if found.figures is not None:
        assert "% of the training examples" in str(found)
        assert "+" not in found.figures.short, "a share is no difference"
        assert all(end is None or 0 <= end <= 100 for end in (found.figures.low, found.figures.high))
