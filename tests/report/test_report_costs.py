"""Measured ratios stand beside their bound, and one that beats it is flagged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made_ledger import QK, ArmSpec, MadeLedger

from fairtune.core.files import read_json, write_json
from fairtune.report.content import ArmRow, ReportContent, Versus
from fairtune.report.writer import make_content, write_report

BOUND = 283.4 / 300


def row(content: ReportContent, arm: str) -> ArmRow:
    return next(row for row in content.rows if row.arm == arm)


def versus(content: ReportContent, arm: str) -> Versus:
    found = row(content, arm).versus
    assert found is not None
    return found


def cautions(content: ReportContent) -> list[str]:
    return [note for note in content.sections["costs"] if note.startswith("Faster than its bound allows")]


def two_arms(make_ledger: Callable[..., MadeLedger], seconds: float, seeds: int = 3) -> MadeLedger:
    right = [300 + seed for seed in range(seeds)]
    return make_ledger({"baseline": ArmSpec(right), "oelm": ArmSpec(right, methods=QK, step_seconds=seconds)})


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


def test_a_ratio_that_beats_its_bound_in_every_seed_is_flagged(content: ReportContent) -> None:
    assert versus(content, "oelm-freeze").beats_bound
    (caution,) = cautions(content)
    assert "oelm-freeze took 0.880 of baseline-fast's time per step (0.880 to 0.880 over 3 seeds)" in caution
    assert "matrix products allow 0.945 at the lowest" in caution
    assert "padding" in caution
    assert "crossover" in caution


def test_a_ratio_within_its_bound_is_not_flagged(make_ledger: Callable[..., MadeLedger]) -> None:
    content = make_content(two_arms(make_ledger, 0.48).results())
    assert not versus(content, "oelm").beats_bound
    assert cautions(content) == []


def test_one_seed_at_the_bound_is_enough_for_no_flag(make_ledger: Callable[..., MadeLedger]) -> None:
    made = two_arms(make_ledger, 0.44)
    path = made.folder("oelm", 2).result
    result = read_json(path)
    assert result is not None
    result["step_seconds"]["median"] = 0.5
    write_json(path, result)
    content = make_content(made.results())
    assert versus(content, "oelm").slowdown.median < BOUND  # type: ignore[union-attr]
    assert cautions(content) == []


def test_a_single_run_is_flagged_as_what_it_is(make_ledger: Callable[..., MadeLedger]) -> None:
    (caution,) = cautions(make_content(two_arms(make_ledger, 0.2, seeds=1).results()))
    assert "in its one paired run" in caution


@pytest.mark.parametrize("setting", ["batch_size", "max_length", "precision"])
def test_arms_whose_steps_do_other_work_have_no_bound(make_ledger: Callable[..., MadeLedger], setting: str) -> None:
    made = two_arms(make_ledger, 0.2)
    file = made.runs / "made" / "study.json"
    plan = read_json(file)
    assert plan is not None
    plan["arms"]["oelm"]["train"][setting] = "another"
    plan["arms"]["baseline"]["train"][setting] = "one"
    write_json(file, plan)
    content = make_content(made.results())
    assert versus(content, "oelm").bound is None
    assert not versus(content, "oelm").beats_bound
    assert any("An arm without a bound" in note for note in content.sections["costs"])


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


def test_bound_sizes_and_flag_are_in_page_and_markdown(written: dict[str, Path]) -> None:
    for kind in ("html", "markdown"):
        text = written[kind].read_text()
        assert "bound: lowest" in text
        assert "0.945" in text
        assert "beats its bound" in text
        assert "Faster than its bound allows" in text
