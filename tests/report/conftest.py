"""Ledgers that the tests of reports share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made_ledger import MadeLedger, make_study, usual_ledger

from fairtune.analysis.results import Results
from fairtune.report.content import ReportContent
from fairtune.report.gathering import make_content
from fairtune.report.writing import write_report


@pytest.fixture
def make_ledger(tmp_path: Path) -> Callable[..., MadeLedger]:
    return lambda arms, **options: make_study(tmp_path / "runs", arms, **options)


@pytest.fixture
def ledger(tmp_path: Path) -> MadeLedger:
    """The usual ledger, for tests that change it."""
    return usual_ledger(tmp_path / "runs")


@pytest.fixture(scope="session")
def kept_ledger(tmp_path_factory: pytest.TempPathFactory) -> MadeLedger:
    """The usual ledger, for tests that only read it."""
    return usual_ledger(tmp_path_factory.mktemp("kept") / "runs")


@pytest.fixture(scope="session")
def results(kept_ledger: MadeLedger) -> Results:
    return kept_ledger.results()


@pytest.fixture(scope="session")
def content(results: Results) -> ReportContent:
    return make_content(results)


@pytest.fixture(scope="session")
def written(results: Results) -> dict[str, Path]:
    return write_report(results)
