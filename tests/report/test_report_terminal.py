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
    assert "84.00 ± 1.24" in lines["baseline"]
    assert "reference" in lines["baseline"]
    assert "-19.92 [-" in lines["oelm-freeze"]
    assert "inferior *" in lines["oelm-freeze"]
    assert "no verdict *" in lines["later"]


def test_notes_name_confounds_like_with_like_and_failures(results: Results) -> None:
    text = " ".join(shown(results).split())
    assert "* oelm-freeze: lr is 0.0001, baseline has 2e-05" in text
    assert "like with like: oelm-freeze: inferior to baseline-fast by 18.50 points" in text
    assert "failed: focal/seed-1: the loss is nan at step 3 of 20" in text
    assert "not finished: 3 of 15 runs" in text


def test_fits_in_a_hundred_columns_even_with_long_names(make_ledger: Callable[..., MadeLedger]) -> None:
    long = "a-very-long-arm-name-that-somebody-typed-without-mercy-for-tables"
    arms = {"baseline": ArmSpec([400, 200]), long: ArmSpec([0, 200], lr=1e-4, methods=QK), "[bold]b": ArmSpec([1, 399])}
    text = shown(make_ledger(arms).results())
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "not separable" in text
    assert "[bold]b" in text
    assert "…" not in text


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
