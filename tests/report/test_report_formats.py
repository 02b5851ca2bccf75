"""Which files a report is made of, and where they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_ledger import STUDY, MadeLedger
from typer.testing import CliRunner

from fairtune.analysis.results import Results
from fairtune.cli.app import app
from fairtune.core.errors import FairtuneError
from fairtune.report.writer import exporters_of, write_report

RUNNER = CliRunner()


def test_asked_formats_alone_are_written_under_the_names_that_were_asked_for(results: Results, tmp_path: Path) -> None:
    written = write_report(results, ["md", "json"], tmp_path / "a" / "b")
    assert written == {"md": tmp_path / "a/b/report.md", "json": tmp_path / "a/b/report.json"}
    names = sorted(path.name for path in (tmp_path / "a/b").iterdir())
    assert names == ["report.json", "report.md", "result-summary.json"]


def test_elsewhere_nothing_is_written_beside_the_runs(ledger: MadeLedger, tmp_path: Path) -> None:
    results = ledger.results()
    before = {path: path.stat().st_mtime_ns for path in ledger.runs.rglob("*")}
    write_report(results, "md", tmp_path / "elsewhere")
    assert {path: path.stat().st_mtime_ns for path in ledger.runs.rglob("*")} == before


def test_a_wrong_format_is_told_with_the_nearest_and_all_that_there_are() -> None:
    with pytest.raises(
        FairtuneError, match=r"found 'latx'; allowed: html, md, json, latex, csv\. Did you mean 'latex'\?"
    ):
        exporters_of("html,latx")
    with pytest.raises(FairtuneError, match="none is named"):
        exporters_of(" , ")
    assert list(exporters_of(" HTML,md ,markdown")) == ["html", "md", "markdown"]


def test_the_verb_writes_what_is_asked_for_where_it_is_asked_for(kept_ledger: MadeLedger, tmp_path: Path) -> None:
    to = str(tmp_path / "paper")
    done = RUNNER.invoke(app, ["report", STUDY, "--runs", str(kept_ledger.runs), "--format", "md,csv", "-o", to])
    assert done.exit_code == 0, done.output
    assert f"Report: {to}/report.md\n        {to}/csv\n" in done.output
    assert sorted(path.name for path in Path(to).iterdir()) == ["csv", "report.md"]


def test_the_verb_tells_a_wrong_format_before_it_reads_anything(tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["report", "nothing", "--runs", str(tmp_path), "--format", "pdf"])
    assert done.exit_code == 2
    assert "found 'pdf'; allowed: html, md, json, latex, csv." in done.stderr
