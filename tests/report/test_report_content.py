"""Figures and sentences are what the ledger supports, and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from made_ledger import QK, ArmSpec, MadeLedger

from fairtune.analysis.study_verdict import Finding
from fairtune.core.files import read_json, write_json
from fairtune.ledger.events import EventLog
from fairtune.report.content import ArmRow, Confound, ReportContent
from fairtune.report.writer import make_content


def row(content: ReportContent, arm: str) -> ArmRow:
    return next(row for row in content.rows if row.arm == arm)


def finding(content: ReportContent, arm: str) -> Finding:
    return next(finding for finding in content.sections["findings"].findings if finding.arm == arm)


def test_figures_come_from_predictions_not_from_results_of_runs(ledger: MadeLedger, content: ReportContent) -> None:
    assert row(content, "baseline").summaries["accuracy"].mean == pytest.approx(336 / 400)
    ledger.predict("baseline", 0, right=276)
    changed = row(make_content(ledger.results()), "baseline")
    assert changed.summaries["accuracy"].mean == pytest.approx((276 + 338 + 334) / 1200)
    assert changed.scores[0] == pytest.approx(276 / 400)


def test_an_inferior_arm_is_called_so_with_its_evidence(content: ReportContent) -> None:
    found = finding(content, "oelm-freeze")
    assert found.word == "inferior"
    assert re.fullmatch(
        r"inferior to baseline-fast by 18\.50 points \(n = 3; alone −22\.63 to −14\.37, p < \.001; among 4 comparisons "
        r"−24\.24 to −12\.76, Holm p < \.001\); a loss beyond the margin, 1\.24 points, is shown\.",
        found.text,
    )


def test_the_fair_comparison_comes_first_and_the_plain_difference_stands_small_beside_it(
    content: ReportContent,
) -> None:
    found = finding(content, "oelm-freeze")
    assert found.against == "baseline-fast"
    assert (
        "Not a verdict: against baseline, which has another lr, the plain difference is −19.92 points."
        in found.cautions
    )
    versus, raw = row(content, "oelm-freeze").versus, row(content, "oelm-freeze").raw
    assert versus is not None
    assert (versus.reference, versus.confounds, versus.role, versus.about) == (
        "baseline-fast",
        (),
        "primary",
        "methods",
    )
    assert raw is not None
    assert (raw.reference, raw.word, raw.p) == ("baseline", "descriptive", None)
    assert raw.confounds == (Confound("lr", "0.0001", "2e-05"),)
    assert content.sections["comparisons"].raw_differences == (raw,)


def test_a_comparison_of_settings_is_called_so(content: ReportContent) -> None:
    found = finding(content, "baseline-fast")
    assert "It has the methods of baseline: this compares settings (lr), not methods." in found.cautions


def test_figures_that_stand_together_are_of_the_same_seeds(content: ReportContent) -> None:
    """The second run of focal failed: the means beside its difference are those of the seeds that both arms have."""
    focal = row(content, "focal")
    assert focal.versus is not None
    assert (focal.versus.n, focal.summaries["accuracy"].n) == (2, 2)
    assert focal.versus.mean == pytest.approx(focal.summaries["accuracy"].mean)
    assert focal.versus.base == pytest.approx((336 + 334) / 800), "not the mean of all three runs of baseline"
    assert focal.versus.difference == pytest.approx(focal.versus.mean - focal.versus.base)
    assert focal.versus.missing == ("focal/seed-1",)


def test_without_a_control_the_report_says_that_method_and_setting_cannot_be_told_apart(
    make_ledger: Callable[..., MadeLedger],
) -> None:
    made = make_ledger({"baseline": ArmSpec([330, 331]), "oelm": ArmSpec([300, 302], lr=1e-4, methods=QK)})
    found = finding(make_content(made.results()), "oelm")
    assert found.word == "not shown", "never better or worse"
    assert "Method and lr cannot be told apart; it takes an arm with the same lr and no methods." in found.text
    assert not any(text.startswith("Uncertainty") for text in found.cautions), "nothing that is added would help"


def test_one_run_gives_no_verdict_and_no_interval(make_ledger: Callable[..., MadeLedger]) -> None:
    content = make_content(make_ledger({"baseline": ArmSpec([330]), "oelm": ArmSpec([300], methods=QK)}).results())
    assert finding(content, "oelm").text.startswith("no verdict against baseline: one run only")
    assert "an interval takes two" in finding(content, "baseline").text
    assert row(content, "oelm").summaries["accuracy"].low is None
    versus = row(content, "oelm").versus
    assert versus is not None
    assert versus.p is None


def test_failures_unfinished_runs_and_exclusions_are_listed(ledger: MadeLedger) -> None:
    stray = ledger.folder("retired", 0)
    stray.write_plan({"key": "old"})
    content = make_content(ledger.results())
    assert content.sections["trouble"].failures == {"focal/seed-1": "the loss is nan at step 3 of 20"}
    assert set(content.sections["trouble"].unfinished) == {"later/seed-0", "later/seed-1", "later/seed-2"}
    assert content.sections["trouble"].exclusions == ("retired/seed-0: not in the newest plan",)
    assert "1 of its 3 runs failed" in " ".join(finding(content, "focal").cautions)
    assert content.header.statuses == {"finished": 11, "failed": 1, "waiting": 3}


def test_an_arm_of_which_nothing_is_left_is_said_so(make_ledger: Callable[..., MadeLedger]) -> None:
    made = make_ledger({"baseline": ArmSpec([330, 331]), "oelm": ArmSpec(["it broke", "it broke"], methods=QK)})
    found = finding(make_content(made.results()), "oelm")
    assert found.text == "no verdict against baseline: no run to compare; two seeds or more are needed."
    assert found.cautions == ("All of its 2 runs failed.",)


def test_an_attempt_that_failed_before_the_run_finished_is_not_forgotten(ledger: MadeLedger) -> None:
    log = EventLog(ledger.folder("baseline", 0).events)
    log.write("failed", 0, reason="out of memory")
    log.write("warning", 0, text="a torn checkpoint")
    log.write("warning", 0, text="a torn checkpoint")  # by a step that was lost and done again
    log.close()
    content = make_content(ledger.results())
    assert content.sections["trouble"].retried == ("baseline/seed-0: out of memory",)
    assert content.sections["trouble"].warnings == ("baseline/seed-0: a torn checkpoint",)
    assert "baseline/seed-0" not in content.sections["trouble"].failures


def test_an_arm_without_runs_has_no_figures(content: ReportContent) -> None:
    later = row(content, "later")
    assert (later.summaries["accuracy"].n, later.planned, later.step_seconds, later.trainable_share) == (
        0,
        3,
        None,
        None,
    )


def test_a_margin_in_percent_is_resolved_and_explained(content: ReportContent) -> None:
    assert content.header.margin == pytest.approx(0.015 * 0.84)
    assert any("1.26 points (1.5% of baseline's mean)" in note for note in content.sections["notes"])


def test_without_a_margin_nothing_can_be_not_inferior(make_ledger: Callable[..., MadeLedger]) -> None:
    content = make_content(make_ledger({"baseline": ArmSpec([330, 331]), "oelm": ArmSpec([329, 331])}).results())
    assert any("states no margin" in note for note in content.sections["notes"])


def test_times_that_runs_recorded_are_not_compared(content: ReportContent) -> None:
    arm = row(content, "oelm-freeze")
    assert arm.step_seconds is not None, "what a run took is shown as what it is"
    assert arm.timed is None
    assert arm.versus is not None
    assert (arm.versus.timed, arm.versus.time_change) == (None, None)
    assert arm.versus.untold == "its time was not measured"


def test_a_busy_machine_is_flagged(ledger: MadeLedger, content: ReportContent) -> None:
    assert content.sections["environment"].busy == ()
    path = ledger.folder("focal", 0).environment
    environment = read_json(path)
    assert environment is not None
    environment["load"]["load_average"][0] = 9.5
    write_json(path, environment)
    content = make_content(ledger.results())
    assert content.sections["environment"].busy == ("focal/seed-0: load average 9.5 on 2 cores when it began",)
    assert any(note.startswith("1 run began on a busy machine") for note in content.sections["costs"].own_notes)


def test_machines_that_differ_are_told_apart(ledger: MadeLedger) -> None:
    path = ledger.folder("baseline", 1).environment
    environment = json.loads(path.read_text())
    environment["packages"]["torch"] = "2.12.0"
    write_json(path, environment)
    machine = make_content(ledger.results()).sections["environment"]
    assert machine.differing == ("packages.torch: 2.13.0 in 11 runs; 2.12.0 in 1 run",)
    assert "packages.torch" not in machine.facts
    assert machine.facts["cpu"] == "a CPU"


def test_learning_curves_have_validation_scores_and_training_loss(content: ReportContent) -> None:
    curve = next(c for c in content.sections["curves"] if (c.arm, c.seed) == ("baseline", 0))
    assert [step for step, _ in curve.score] == [5, 10, 15, 20]
    assert curve.loss[0] == (1, pytest.approx(0.68))
    assert len(curve.loss) == 20


def test_cards_come_from_the_first_finished_run(content: ReportContent) -> None:
    cards = {card.arm: card for card in content.sections["start"].cards}
    assert set(cards) == {"baseline", "baseline-fast", "oelm-freeze", "focal"}
    assert [change["name"] for change in cards["oelm-freeze"].changed] == ["layer.0.query.weight"]
    assert cards["baseline"].changed == ()


def test_an_attention_that_is_not_set_is_the_models_own(make_ledger: Callable[..., MadeLedger]) -> None:
    made = make_ledger({"baseline": ArmSpec([330, 331]), "published": ArmSpec([300, 302], methods=QK)})
    path = made.runs / "made" / "study.json"
    plan = read_json(path)
    assert plan is not None
    for arm, attention in (("baseline", None), ("published", "bidirectional")):
        plan["arms"][arm]["train"]["attention"] = attention
    write_json(path, plan)
    content = make_content(made.results())
    versus = row(content, "published").versus
    assert versus is not None
    assert versus.confounds == (Confound("attention", "bidirectional", "the model's own"),)
    assert "Method and attention cannot be told apart" in finding(content, "published").text
