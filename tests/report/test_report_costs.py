"""Times come from the timing experiment, beside the bound; one that beats it is marked, and runs' own times are not compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from made_ledger import QK, ArmSpec, MadeLedger
from tests.report.made_timing import time_ledger

from fairtune.core.files import read_json, write_json
from fairtune.ledger.timings import FIELDS
from fairtune.report.content import ArmRow, ReportContent, Versus
from fairtune.report.evidence import FAILED_AA
from fairtune.report.sections.costs.figure import draw_bars, draw_steps
from fairtune.report.sections.pareto.content import cost_panels
from fairtune.report.writer import make_content, write_report

BOUND = 283.4 / 300


def row(content: ReportContent, arm: str) -> ArmRow:
    return next(row for row in content.rows if row.arm == arm)


def versus(content: ReportContent, arm: str) -> Versus:
    found = row(content, arm).versus
    assert found is not None
    return found


def two_arms(make_ledger: Callable[..., MadeLedger], seconds: float | None = None) -> MadeLedger:
    right = [300, 301, 302]
    made = make_ledger({"baseline": ArmSpec(right), "oelm": ArmSpec(right, methods=QK)}, margin=0.05)
    if seconds is not None:
        time_ledger(made, {"baseline": 0.5, "oelm": seconds}, frozen=("oelm",))
    return made


def test_the_bound_compares_the_matrix_products_of_two_arms(content: ReportContent) -> None:
    assert versus(content, "oelm-freeze").bound == pytest.approx(BOUND)
    assert versus(content, "baseline-fast").bound == 1.0
    (plain,) = content.sections["comparisons"].raw_differences
    assert (plain.reference, plain.bound) == ("baseline", pytest.approx(BOUND))
    assert row(content, "oelm-freeze").flops_per_token == pytest.approx(283.4e6)


def test_sizes_come_from_card_and_result(content: ReportContent) -> None:
    arm = row(content, "oelm-freeze")
    assert (arm.trainable, arm.frozen, arm.parameters, arm.saved_bytes) == (900, 100, 1000, 1200)
    assert row(content, "later").trainable is None


@pytest.mark.usefixtures("undrawn")
def test_a_ratio_that_beats_its_bound_is_marked_everywhere(make_ledger: Callable[..., MadeLedger]) -> None:
    results = two_arms(make_ledger, 0.4).results()
    timed = versus(make_content(results), "oelm").timed
    assert timed is not None
    assert timed.implausible
    assert versus(make_content(results), "oelm").time_change is None
    written = write_report(results)
    for kind in ("html", "markdown"):
        text = written[kind].read_text()
        assert "implausible" in text
        assert "Likely reasons" in text
    assert json.loads(written["json"].read_text())["timing"]["arms"]["oelm"]["implausible"]
    content = make_content(results)
    (panel,) = (found for found in cost_panels(content.header, content.rows) if found.name == "time")
    assert [point.arm for point in panel.points if point.front] == ["baseline"], "it leads no front"


def test_times_of_an_experiment_that_failed_its_aa_are_no_figure(make_ledger: Callable[..., MadeLedger]) -> None:
    content = make_content(two_arms(make_ledger, 0.48).results())
    assert "time" in {panel.name for panel in cost_panels(content.header, content.rows)}
    doubted = [r if r.versus is None else replace(r, versus=replace(r.versus, untold=FAILED_AA)) for r in content.rows]
    assert "time" not in {panel.name for panel in cost_panels(content.header, doubted)}


def test_a_ratio_within_its_bound_is_not_marked(make_ledger: Callable[..., MadeLedger]) -> None:
    content = make_content(two_arms(make_ledger, 0.48).results())
    assert versus(content, "oelm").time_change == pytest.approx(-0.04, abs=0.005)
    assert not any("Implausible" in note for note in content.sections["costs"].notes)


def test_without_a_timing_experiment_the_section_says_how_to_make_one(make_ledger: Callable[..., MadeLedger]) -> None:
    costs = make_content(two_arms(make_ledger).results()).sections["costs"]
    assert costs.timing is None
    assert "`fairtune time`" in costs.notes[0]


@pytest.mark.usefixtures("undrawn")
def test_the_study_writes_its_times_in_the_published_form(make_ledger: Callable[..., MadeLedger]) -> None:
    made = two_arms(make_ledger, 0.48)
    write_report(made.results())
    found = json.loads((made.runs / "made" / "timing.json").read_text())
    own = found["runs"]["arms"]["oelm"]
    assert set(own) == {"n", *FIELDS, "total_formatted", "total_seconds_range"}
    assert (own["n"], own["validation_total"], own["gpu_utilization"]) == (3, 2.0, None)
    assert own["step_cv"] == pytest.approx(0.05 / 1.05 * (18 / 17) ** 0.5), "of 18 steps, half of them a tenth longer"
    assert own["total_seconds_range"] == pytest.approx([13.1, 13.3])
    block = found["comparison"]["arms"]["oelm"]
    assert block["against"] == "baseline"
    assert block["speedup_ratio"] == pytest.approx(1 / block["ratio"])
    assert block["time_difference_percent"] == pytest.approx(100 * (block["ratio"] - 1))
    assert block["time_difference_seconds"] == pytest.approx(20 * block["gap_per_step_seconds"]), (
        "over a run's 20 steps"
    )
    for name in ("time_difference_seconds", "time_difference_percent", "speedup_ratio", "gap_per_step_seconds"):
        low, high = block[f"{name}_interval"]
        assert low < block[name] < high
    assert found["comparison"]["a_a"]["ratio"] == pytest.approx(1, abs=0.01)


def test_what_runs_took_is_by_arm_and_leaves_out_what_is_not_there(make_ledger: Callable[..., MadeLedger]) -> None:
    arms = {
        "baseline": ArmSpec([300, 301]),
        "later": ArmSpec([None, None], methods=QK),
        "tfidf": ArmSpec([290, 290], learner="tfidf"),
    }
    own = make_content(make_ledger(arms).results()).sections["costs"].own
    assert list(own) == ["baseline", "tfidf"]
    assert own["baseline"]["step_curve"] == [(step, 0.5 * (1 + step % 2 / 10)) for step in range(3, 21)], (
        "without the warm-up"
    )
    assert (own["tfidf"]["total_seconds"], own["tfidf"]["per_step_avg"]) == (1.6, None), "fitted at once"
    assert draw_bars(list(arms), own) is not None
    assert draw_steps(list(arms), {"tfidf": own["tfidf"]}) is None


@pytest.mark.usefixtures("undrawn")
def test_a_study_that_was_not_timed_has_no_comparison(make_ledger: Callable[..., MadeLedger]) -> None:
    made = two_arms(make_ledger)
    write_report(made.results())
    found = json.loads((made.runs / "made" / "timing.json").read_text())
    assert found["comparison"] is None
    assert "fairtune time" in found["note"]


@pytest.mark.parametrize("setting", ["batch_size", "max_length", "precision"])
def test_arms_whose_steps_do_other_work_have_no_bound(make_ledger: Callable[..., MadeLedger], setting: str) -> None:
    made = two_arms(make_ledger)
    file = made.runs / "made" / "study.json"
    plan = read_json(file)
    assert plan is not None
    plan["arms"]["oelm"]["train"][setting] = "another"
    plan["arms"]["baseline"]["train"][setting] = "one"
    write_json(file, plan)
    content = make_content(made.results())
    assert versus(content, "oelm").bound is None
    assert any("An arm without a bound" in note for note in content.sections["costs"].notes)


@pytest.mark.usefixtures("undrawn")
def test_runs_recorded_before_costs_were_counted_can_be_reported(ledger: MadeLedger) -> None:
    for arm in ("baseline", "oelm-freeze"):
        for seed in range(3):
            folder = ledger.folder(arm, seed)
            card, result = read_json(folder.card), read_json(folder.result)
            assert card is not None
            assert result is not None
            write_json(folder.card, {k: v for k, v in card.items() if k not in ("attention", "costs")})
            write_json(folder.result, {k: v for k, v in result.items() if k != "frozen"})
    results = ledger.results()
    paths = write_report(results)
    content = make_content(results)
    assert versus(content, "oelm-freeze").bound is None
    assert row(content, "oelm-freeze").saved_bytes is None
    assert "oelm-freeze" in paths["html"].read_text()


def test_bound_and_sizes_are_in_page_and_markdown(written: dict[str, Path]) -> None:
    for kind in ("html", "markdown"):
        text = written[kind].read_text()
        assert "bound: lowest" in text
        assert "0.945" in text
        assert "do not compare these times" in text
