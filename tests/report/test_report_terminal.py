"""The verdict table in a terminal of 100 columns, without colour."""

from __future__ import annotations

import io
from collections.abc import Callable

from made_ledger import QK, ArmSpec, MadeLedger
from rich.console import Console

from fairtune.analysis.results import Results
from fairtune.report.terminal import verdict_table


def shown(results: Results) -> str:
    buffer = io.StringIO()
    Console(file=buffer, width=100, force_terminal=False).print(verdict_table(results))
    return buffer.getvalue()


def test_has_a_line_an_arm_with_figures_and_verdict(results: Results) -> None:
    table = shown(results).split("\n* ")[0]
    lines = {line.split()[0]: line for line in table.splitlines() if line.split()}
    assert "84.00 ± 2.41" in lines["baseline"], "the luck of examples counts too"
    assert "84.75 [65, 97]" in lines["focal"], "two seeds: too wide an interval to be even about the mean"
    assert "reference" in lines["baseline"]
    assert "baseline-fast  -18.50 [-22.63, -14.37]" in lines["oelm-freeze"], "against its control"
    assert lines["oelm-freeze"].split()[-1] == "inferior"
    assert "no verdict *" in lines["later"]


def test_notes_name_settings_both_intervals_plain_differences_and_failures(results: Results) -> None:
    text = " ".join(shown(results).split())
    assert "It compares settings: lr 0.0001, not 2e-05." in text
    assert (
        "oelm-freeze: inferior to baseline-fast by 18.50 points (n = 3; alone -22.63 to -14.37, p < .001; among 4 "
        "comparisons -24.24 to -12.76, Holm p < .001)" in text
    )
    assert "plain differences to baseline, not verdicts: oelm-freeze -19.92 " in text
    assert "per step" not in text, "arms that were not timed against each other are not compared in time"
    assert "trainable %: baseline 100.0; baseline-fast 100.0; oelm-freeze 90.0; " in text
    assert "later -" not in text, "what was not measured is not listed"
    assert "failed: focal/seed-1: the loss is nan at step 3 of 20" in text
    assert "not finished: 3 of 15 runs" in text


def test_what_was_planned_and_what_to_mind_come_before_the_table(results: Results) -> None:
    first, *_ = " ".join(shown(results).split()).split(" arm n ")
    assert first.startswith(
        "11 of 15 runs are finished and 1 failed; so far no method is shown to be better than its control"
    )
    assert " plan: Planned on " in first
    assert "4 primary comparisons, corrected together (Holm); the margin is 1.5 %; confidence 95 %." in first
    assert "warning: validation curves of baseline, baseline-fast, oelm-freeze, focal were still rising" in first


def test_fits_in_a_hundred_columns_even_with_long_names(make_ledger: Callable[..., MadeLedger]) -> None:
    long = "a-very-long-arm-name-that-somebody-typed-without-mercy-for-tables"
    arms = {"baseline": ArmSpec([400, 200]), long: ArmSpec([0, 200], lr=1e-4, methods=QK), "[bold]b": ArmSpec([1, 399])}
    text = shown(make_ledger(arms).results())
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "not shown *" in text
    assert "no verdict *" in text
    assert "[bold]b" in text
    assert "one seed above, one below" in text
    assert "…" not in text


def test_a_name_is_broken_at_its_hyphens_and_not_inside_a_word(make_ledger: Callable[..., MadeLedger]) -> None:
    arms = {
        "baseline": ArmSpec([330, 331, 332]),
        "baseline-fast": ArmSpec([335, 333, 337], lr=1e-4),
        "oelm-random-orthogonal": ArmSpec([300, 302, 301], lr=1e-4, methods=QK),
    }
    table = shown(make_ledger(arms, margin="1.5%").results()).partition(" arm ")[2]
    assert "oelm-random-orthogon " not in table
    assert "orthogonal" in table


def test_one_run_shows_no_interval(make_ledger: Callable[..., MadeLedger]) -> None:
    text = shown(make_ledger({"baseline": ArmSpec([330]), "oelm": ArmSpec([300], methods=QK)}).results())
    assert "no verdict" in text
    assert "[-" not in text
    assert "± 95 %" in text
    assert text.count("±") == 1


def test_a_reason_cannot_command_the_terminal(make_ledger: Callable[..., MadeLedger]) -> None:
    text = shown(make_ledger({"baseline": ArmSpec(["\x1b[2Jgone\x07"]), "oelm": ArmSpec([300])}).results())
    assert "gone" in text
    assert "\x1b" not in text
    assert "\x07" not in text
