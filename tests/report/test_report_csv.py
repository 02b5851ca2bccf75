"""Tidy CSV: every digit, one row per observation, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
from collections.abc import Callable
from io import StringIO

import pytest
from made_ledger import ArmSpec, MadeLedger
from made_text_ledger import MadeTextLedger

from fairtune.analysis.results import Results
from fairtune.report.content import ReportContent
from fairtune.report.csv import CsvExporter, table_bytes


def tables(content: ReportContent, results: Results) -> dict[str, list[dict[str, str]]]:
    files = CsvExporter().files(content, results)
    return {name: list(csv.DictReader(StringIO(text.decode("utf-8")))) for name, text in files.items()}


def test_scores_are_those_of_the_ledger_with_every_digit(content: ReportContent, results: Results) -> None:
    found = tables(content, results)["csv/scores.csv"]
    values = {(row["arm"], int(row["seed"]), row["metric"], row["split"]): float(row["value"]) for row in found}
    runs = [run for run in results.runs if run.status == "finished"]
    assert len(found) == len(values) == sum(len(run.metrics) for run in runs)
    for run in runs:
        for metric, value in run.metrics.items():
            assert values[run.arm, run.seed, metric, "test"] == value


def test_language_models_have_best_and_last_weights(
    kept_text_ledger: MadeTextLedger, text_content: ReportContent
) -> None:
    results = kept_text_ledger.results()
    rows = [row for row in tables(text_content, results)["csv/scores.csv"] if row["metric"] == "loss"]
    mine = {(row["split"], row["weights"]): float(row["value"]) for row in rows if row["arm"] == results.reference}
    assert set(mine) == {("test", "best"), ("test", "last"), ("validation", "best")}
    assert mine["test", "last"] > mine["test", "best"]


def test_comparisons_and_arms_have_a_row_each(content: ReportContent, results: Results) -> None:
    found = tables(content, results)
    assert [row["arm"] for row in found["csv/arms.csv"]] == results.arms
    rows = found["csv/comparisons.csv"]
    assert len(rows) == len(results.comparisons) + len(results.raw_differences)
    oelm = next(row for row in rows if row["arm"] == "oelm-freeze")
    comparison = results.comparison("oelm-freeze")
    assert comparison is not None
    assert float(oelm["difference"]) == comparison.difference
    assert (oelm["against"], oelm["verdict"]) == ("baseline-fast", comparison.verdict.word)
    later = next(row for row in rows if row["arm"] == "later")
    assert (later["n"], later["difference"], later["p_holm"]) == ("0", "", "")


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-2", "@sum", "a,b", 'q"uote', "line\nbreak", "é中"])
def test_no_text_becomes_a_formula_or_another_cell(name: str) -> None:
    (row,) = list(csv.DictReader(StringIO(table_bytes(["arm", "value"], [{"arm": name, "value": -1.5}]).decode())))
    assert row["value"] == "-1.5", "numbers keep their sign"
    assert not row["arm"].startswith(("=", "+", "-", "@"))
    assert row["arm"].lstrip("'") == name.replace("\n", "\\n")


def test_names_of_others_stay_in_their_cell(make_ledger: Callable[..., MadeLedger]) -> None:
    from fairtune.report.writer import make_content

    results = make_ledger({"baseline": ArmSpec([330, 331]), '=HYPERLINK("x"),y': ArmSpec([329, 331])}).results()
    rows = tables(make_content(results), results)["csv/arms.csv"]
    assert [row["arm"] for row in rows] == ["baseline", '\'=HYPERLINK("x"),y']
