"""What each change is worth: expected beside measured time, the ranking's answers, and methods that are left out."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator

import pytest
from made_ledger import QK, ArmSpec, MadeLedger, make_study
from rich.console import Console
from tests.conftest import drawing_nothing
from tests.report.made_timing import time_ledger

from fairtune.analysis.block_ratios import BlockRatio
from fairtune.analysis.results import Results
from fairtune.analysis.statistics import holm
from fairtune.analysis.timings import StepRatio
from fairtune.analysis.verdicts import (
    BETTER,
    EQUIVALENT,
    INFERIOR,
    NONE,
    NOT_INFERIOR,
    NOT_SEPARABLE,
    NOT_SHOWN,
    WORSE,
)
from fairtune.methods.orthogonal_qk import OrthogonalQKConfig
from fairtune.report.content import Confound, ReportContent, Versus
from fairtune.report.evidence import FAILED_AA, IMPLAUSIBLE
from fairtune.report.sections.comparisons.worth import cost_text, rank, settings_text, worth_of
from fairtune.report.terminal import verdict_table
from fairtune.report.writer import make_content, write_report

BITFIT = [{"bitfit": {}}]


def versus(
    word: str = BETTER, time_change: float | None = None, note: str = "", difference: float | None = 0.01, arm: str = "arm",
    untold: str = "", expected: float | None = 1.0, confounds: tuple[Confound, ...] = (), timed: float | None = None,
) -> Versus:  # fmt: skip
    low, high = (None, None) if difference is None else (difference - 0.005, difference + 0.005)
    ratio = None if timed is None else BlockRatio(20, timed, timed - 0.05, timed + 0.04)
    return Versus(
        arm, "baseline", 3, difference, low, high, 0.8, None, 0.01, word, note, confounds,
        None if ratio is None else StepRatio(arm, "baseline", ratio, ratio, 0.5), expected, None, time_change, untold,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (versus(BETTER, 0.93), "yes, at +93 % time per step"),
        (versus(BETTER, -0.15), "yes, and it saves 15 % of a step's time"),
        (versus(BETTER, -0.054), "yes, and it saves 5.4 % of a step's time"),
        (versus(BETTER, 0.0), "yes, at no clear change in time"),
        (versus(BETTER), "yes, but its time was not measured"),
        (versus(BETTER, untold=FAILED_AA, timed=0.9), f"yes, but {FAILED_AA}"),
        (versus(INFERIOR), "no"),
        (versus(NOT_INFERIOR), "not shown: no worse, but its time was not measured; `fairtune time` measures it"),
        (versus(WORSE, 0.9), "no"),
        (versus(INFERIOR, -0.15), "no, though it saves 15 % of a step's time"),
        (versus(NOT_INFERIOR, -0.15), "yes, saves 15 % of a step's time"),
        (versus(EQUIVALENT, -0.15), "yes, saves 15 % of a step's time"),
        (versus(EQUIVALENT, 0.4), "no: neither better nor clearly cheaper"),
        (
            versus(NOT_SHOWN, -0.5, "method and lr cannot be told apart"),
            "not shown: method and lr cannot be told apart",
        ),
        (versus(NOT_INFERIOR, 0.0), "no: neither better nor clearly cheaper"),
        (
            versus(NOT_INFERIOR, untold=IMPLAUSIBLE, timed=0.2),
            f"not shown: no worse, but {IMPLAUSIBLE}; time it longer",
        ),
        (
            versus(NOT_SEPARABLE, -0.5, "about 4 more seeds could settle it"),
            "not shown: about 4 more seeds could settle it",
        ),
        (versus(NONE, None, "one run only to compare"), "not shown: one run only to compare"),
    ],
)
def test_the_answer_follows_from_verdict_and_time(found: Versus, answer: str) -> None:
    assert worth_of(found, "accuracy").answer == answer


def test_arms_are_ranked_by_gain_and_those_without_a_figure_come_last() -> None:
    found = [versus(arm="a", difference=-0.1), versus(arm="b", difference=None), versus(arm="c", difference=0.2)]
    assert [one.versus.arm for one in rank(found, "accuracy")] == ["c", "a", "b"]
    assert [one.versus.arm for one in rank(found, "perplexity")] == ["a", "c", "b"]
    mixed = versus(NOT_SHOWN, arm="d", difference=0.9)
    assert [one.versus.arm for one in rank([mixed, *found], "accuracy")] == ["c", "a", "d", "b"], (
        "not ahead of a fair one"
    )
    lower = worth_of(versus(difference=-0.1), "perplexity")
    assert (lower.gain, lower.low, lower.high) == pytest.approx((0.1, 0.095, 0.105))


def test_one_arm_is_no_ranking(make_ledger: Callable[..., MadeLedger]) -> None:
    content = make_content(make_ledger({"baseline": ArmSpec([330, 331]), "one": ArmSpec([330, 331])}).results())
    assert content.sections["comparisons"].ranking == ()


def test_settings_that_differ_are_reported_beside_the_answer() -> None:
    assert settings_text(worth_of(versus(), "accuracy")) == ""
    one = worth_of(versus(confounds=(Confound("max_length", "128", "64"),)), "accuracy")
    assert settings_text(one) == "differs in max_length 128, not 64"


def test_cost_has_interval_and_expectation() -> None:
    assert cost_text(versus(timed=1.93, expected=2.0)) == "×1.930 (1.880 to 1.970), ×2.00 expected"
    assert cost_text(versus(timed=1.1)) == "×1.100 (1.050 to 1.140)"
    assert cost_text(versus(expected=2.0)) == "×2.00 expected", "also where it was not timed"
    assert cost_text(versus(expected=None)) == "–"


@pytest.fixture(scope="module")
def two_passes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeLedger]:
    """An arm whose method passes twice, one with two methods, and one that lacks the first of them."""
    arms = {
        "baseline": ArmSpec([330, 331, 329]),
        "twice": ArmSpec([332, 333, 331], methods=QK, step_seconds=0.95),
        "both": ArmSpec([360, 362, 361], methods=[*QK, *BITFIT], step_seconds=0.96),
        "one": ArmSpec([331, 332, 330], methods=BITFIT),
        "other-lr": ArmSpec([331, 332, 330], lr=1e-4),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OrthogonalQKConfig, "step_factor", property(lambda _: 2.0))
        made = make_study(tmp_path_factory.mktemp("two-passes") / "runs", arms)
        time_ledger(made, {"baseline": 0.5, "twice": 0.95, "both": 0.96, "one": 0.5, "other-lr": 0.5})
        yield made


@pytest.fixture(scope="module")
def found_results(two_passes: MadeLedger) -> Results:
    """For tests that only read them."""
    return two_passes.results()


@pytest.fixture(scope="module")
def files(found_results: Results) -> dict[str, str]:
    with drawing_nothing():
        return {kind: path.read_text() for kind, path in write_report(found_results).items()}


def test_expected_ratio_stands_beside_the_measured_one(found_results: Results, files: dict[str, str]) -> None:
    found = {row.arm: row.versus for row in make_content(found_results).rows if row.versus}
    assert {arm: v.expected for arm, v in found.items()} == {"twice": 2.0, "both": 2.0, "one": 1.0, "other-lr": 1.0}
    assert found["twice"].bound is None
    assert found["twice"].timed is not None
    assert not found["twice"].timed.implausible
    assert found["one"].bound is not None
    for kind in ("html", "markdown"):
        assert "2.000 expected" in files[kind]
        assert "2.000 expected" in files[kind]
        assert "×2.00 expected" in files[kind]
        assert "The expected ratio counts the passes" in files[kind]
    assert re.search(r"×1\.(90|89)\d \(1\.\d+ to 1\.\d+\), ×2\.00 expected", files["markdown"])
    assert json.loads(files["json"])["rows"][1]["versus"]["expected"] == 2.0
    buffer = io.StringIO()
    Console(file=buffer, width=100).print(verdict_table(found_results))
    shown = " ".join(buffer.getvalue().split())
    assert "time per step against the same arms [95 %]: twice ×1." in shown
    assert "A/A: baseline against a second copy of itself" in shown


def test_no_expectation_where_a_step_does_other_work(two_passes: MadeLedger) -> None:
    results = two_passes.results()
    for arm in results.arms:
        results.plan["arms"][arm]["train"]["max_length"] = 128 if arm == "twice" else 64
    found = {row.arm: row.versus for row in make_content(results).rows if row.versus}
    assert found["twice"].expected is None


def test_a_method_that_is_not_installed_here_is_expected_to_cost_what_the_plan_says(
    content: ReportContent, two_passes: MadeLedger
) -> None:
    results = two_passes.results()
    results.plan["arms"]["twice"]["methods"] = [{"from_another_version": {}}]
    found = {row.arm: row.versus for row in make_content(results).rows if row.versus}
    assert found["twice"].expected == 2.0
    assert content.sections["comparisons"].ranking


def test_an_arm_is_compared_with_the_arm_that_lacks_one_method(found_results: Results, files: dict[str, str]) -> None:
    content = make_content(found_results)
    found = [(one.versus.arm, one.left_out, one.versus.reference) for one in content.sections["comparisons"].left_out]
    assert found == [("both", "bitfit", "twice"), ("both", "orthogonal_qk", "one")]
    assert content.sections["comparisons"].left_out[0].gain == pytest.approx(29 / 400)
    assert content.sections["comparisons"].left_out[1].versus.expected == 2.0
    assert content.sections["comparisons"].raw_differences == (), "what is left out is no plain difference"
    assert {c.role for c in found_results.left_out} == {"secondary"}
    alone = [c.found.p for c in found_results.left_out]
    assert [c.verdict.p for c in found_results.left_out] == pytest.approx(holm(alone)), "corrected among themselves"
    for text in files.values():
        assert "orthogonal_qk" in text.replace("\\", "")


def test_the_ranking_is_in_page_and_markdown(files: dict[str, str]) -> None:
    assert "## What each change is worth" in files["markdown"]
    assert "| 1 | both | baseline | 3 | +7.75 |" in files["markdown"]
    assert '1.&nbsp;<span class="arm">both</span>' in files["html"]
    assert "compares settings: lr 0.0001, not 2e-05" in files["html"]
    assert "Left out" in files["html"]
