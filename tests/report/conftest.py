"""Ledgers that the tests of reports share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from made_ledger import MadeLedger, make_study, usual_ledger
from made_text_ledger import MadeTextLedger, make_text_study, usual_text_ledger

from fairtune.analysis.results import Results
from fairtune.report.content import ReportContent
from fairtune.report.writer import make_content, write_report


@pytest.fixture
def make_ledger(tmp_path: Path) -> Callable[..., MadeLedger]:
    return lambda arms, **options: make_study(tmp_path / "runs", arms, **options)


@pytest.fixture
def ledger(kept_ledger: MadeLedger, tmp_path: Path) -> MadeLedger:
    """The usual ledger, for tests that change it."""
    shutil.copytree(kept_ledger.runs, tmp_path / "runs", ignore=shutil.ignore_patterns("report"))
    return MadeLedger(tmp_path / "runs", dict(kept_ledger.arms))


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


@pytest.fixture
def make_text(tmp_path: Path) -> Callable[..., MadeTextLedger]:
    return lambda arms, **options: make_text_study(tmp_path / "runs", arms, **options)


@pytest.fixture(scope="session")
def kept_text_ledger(tmp_path_factory: pytest.TempPathFactory) -> MadeTextLedger:
    """The usual ledger of language models, for tests that only read it."""
    return usual_text_ledger(tmp_path_factory.mktemp("kept-text") / "runs")


@pytest.fixture(scope="session")
def text_content(kept_text_ledger: MadeTextLedger) -> ReportContent:
    return make_content(kept_text_ledger.results())


@pytest.fixture(scope="session")
def text_files(kept_text_ledger: MadeTextLedger) -> dict[str, str]:
    return {kind: path.read_text() for kind, path in write_report(kept_text_ledger.results()).items()}
