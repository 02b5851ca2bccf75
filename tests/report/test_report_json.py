"""report.json: its keys are documented, its schema is shipped, and reports of every kind of study fit it."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from made_ledger import MadeLedger, make_study
from made_timing import time_ledger
from tests.report.made_ledger import ArmSpec

from fairtune.analysis.results import Results
from fairtune.report.comparison_record import comparison_records
from fairtune.report.content import ReportContent
from fairtune.report.json import JsonExporter
from fairtune.report.json_keys import KEYS
from fairtune.report.json_schema import make_schema, shipped_schema
from fairtune.report.writer import make_content

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("report_schema", ROOT / "tools" / "report_schema.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def problems(found: dict[str, Any]) -> list[str]:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(shipped_schema())
    return [f"{'/'.join(map(str, error.path))}: {error.message[:200]}" for error in validator.iter_errors(found)]


def exported(content: ReportContent) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(JsonExporter().render(content))
    return found


def test_the_shipped_schema_is_that_of_the_code() -> None:
    pytest.importorskip("jsonschema").Draft202012Validator.check_schema(shipped_schema())
    assert shipped_schema() == json.loads(json.dumps(make_schema())), "python tools/report_schema.py writes it anew"


def test_the_documented_tables_are_those_of_the_code(tool: ModuleType) -> None:
    page = (ROOT / "docs" / "report-json.md").read_text(encoding="utf-8")
    assert tool.filled_page(page) == page, "python tools/report_schema.py writes them anew"
    assert all(f"\n| `{key}` |" in page for key in KEYS)


def test_a_report_of_classifiers_has_the_documented_keys_in_their_order(content: ReportContent) -> None:
    found = exported(content)
    assert list(found) == list(KEYS)
    assert problems(found) == []


def test_a_report_of_language_models_fits(text_content: ReportContent) -> None:
    found = exported(text_content)
    assert list(found) == list(KEYS)
    assert problems(found) == []
    assert found["comparisons"][0]["lower_is_better"] is True


def test_a_report_with_times_fits_and_its_comparisons_have_them(ledger: MadeLedger) -> None:
    time_ledger(ledger, {"baseline": 0.5, "baseline-fast": 0.5, "oelm-freeze": 0.44})
    found = exported(make_content(ledger.results()))
    assert problems(found) == []
    timed = {one["arm"]: one["time_ratio"] for one in found["comparisons"] if one["role"] == "primary"}
    assert timed["oelm-freeze"] == pytest.approx(0.88, abs=0.01)
    assert timed["focal"] is None


def test_a_report_of_baselines_and_further_metrics_fits(tmp_path: Path) -> None:
    arms = {"baseline": ArmSpec([330, 331]), "tfidf": ArmSpec([300, 300], learner="tfidf")}
    made = make_study(tmp_path / "runs", arms, also=["roc_auc"], threshold="half")
    found = exported(make_content(made.results()))
    assert problems(found) == []
    assert [(one["metric"], one["role"]) for one in found["comparisons"]] == [
        ("accuracy", "simple baseline"),
        ("roc_auc", "simple baseline"),
    ]


def test_a_wrong_report_does_not_fit(content: ReportContent) -> None:
    found = exported(content)
    del found["rows"][0]["versus"]
    found["header"]["seeds"] = "three"
    assert len(problems(found)) == 2


def test_comparisons_say_what_the_results_say(results: Results, content: ReportContent) -> None:
    records = comparison_records(content)
    assert [(one.arm, one.against) for one in records if one.role != "descriptive"] == [
        (one.arm, one.reference) for one in results.comparisons
    ]
    for record, found in zip(records, results.comparisons, strict=False):
        assert (record.n, record.difference, record.low) == (found.found.n, found.difference, found.alone[0])
        assert (record.p_holm, record.verdict) == (found.verdict.p, found.verdict.word)
    described = next(one for one in records if one.role == "descriptive")
    assert (described.arm, described.against, described.verdict, described.p_holm) == (
        "oelm-freeze",
        "baseline",
        "",
        None,
    )
    assert asdict(described)["schema"] == "fairtune.comparison/1"
