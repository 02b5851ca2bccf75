"""A section of a report is a folder and one line in a list: a new one appears in every file, and the list is complete."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_ledger import MadeLedger

import fairtune.report.sections
from fairtune.report import json as exported_json
from fairtune.report import markdown as exported_markdown
from fairtune.report.content import ReportContent
from fairtune.report.json import JsonExporter
from fairtune.report.markdown import MarkdownExporter
from fairtune.report.sections.catalogue import SECTIONS
from fairtune.report.writer import write_report

MODULE = """
from fairtune.core.markdown import heading, items, plain
from fairtune.report.section import ReportSection


def gather(evidence):
    quick = [row.arm for row in evidence.rows if row.step_seconds and row.step_seconds.median < 0.5]
    return quick or None


def markdown(quick, report):
    yield from heading("Quick arms")
    yield from items(f"{plain(arm)} of {plain(report.header.study)}" for arm in quick)


SECTION = ReportSection(__name__, gather, markdown, names=lambda quick, report: {"shout": str.upper})
"""
TEMPLATE = """{% from 'macros.html.j2' import items with context %}
<h2>Quick arms of {{ header.study }}</h2>
{{ items(content) }}
<p>{{ shout('<b>' ~ content[0]) }}</p>
"""


@pytest.fixture
def quick_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "own" / "quick_arms"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(MODULE)
    (folder / "section.html.j2").write_text(TEMPLATE)
    monkeypatch.syspath_prepend(str(folder.parent))
    SECTIONS.append(importlib.import_module("quick_arms").SECTION)
    yield
    SECTIONS.pop()


@pytest.mark.usefixtures("quick_section", "undrawn")
def test_a_section_of_ones_own_is_in_every_file(ledger: MadeLedger) -> None:
    files = {kind: path.read_text() for kind, path in write_report(ledger.results()).items()}
    assert "\n## Quick arms\n\n- oelm-freeze of made\n" in files["markdown"]
    assert json.loads(files["json"])["quick_arms"] == ["oelm-freeze"]
    assert "<summary><h2>Quick arms of made</h2></summary>\n<ul>\n<li>oelm-freeze</li>\n</ul>" in files["html"]
    assert "<p>&lt;B&gt;OELM-FREEZE</p>" in files["html"], "what is put into a template is escaped"


@pytest.mark.usefixtures("quick_section", "undrawn")
def test_a_section_that_has_nothing_to_say_is_null_in_json_and_nowhere_else(ledger: MadeLedger) -> None:
    for spec in ledger.arms:
        for seed in range(3):
            result = ledger.folder(spec, seed).result
            if result.exists():
                result.write_text(result.read_text().replace('"median": 0.44', '"median": 0.54'))
    files = {kind: path.read_text() for kind, path in write_report(ledger.results()).items()}
    assert json.loads(files["json"])["quick_arms"] is None
    assert "Quick arms" not in files["markdown"] + files["html"]


def test_every_folder_of_sections_is_listed_once() -> None:
    folders = {path.parent.name for path in Path(fairtune.report.sections.__file__).parent.glob("*/section.html.j2")}
    names = [section.name for section in SECTIONS]
    assert set(names) == folders
    assert len(names) == len(folders)


def test_sections_claim_no_key_twice(content: ReportContent) -> None:
    keys = [key for section in SECTIONS for key in section.json_keys(content.sections[section.name])]
    assert len(keys) == len(set(keys))


def test_any_section_can_be_taken_off_the_list(content: ReportContent, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.loads(JsonExporter().render(content))
    for taken in list(SECTIONS):
        left = [section for section in SECTIONS if section is not taken]
        for exporter in (exported_json, exported_markdown):
            monkeypatch.setattr(exporter, "SECTIONS", left)
        keys = taken.json_keys(content.sections[taken.name])
        assert json.loads(JsonExporter().render(content)) == {k: v for k, v in whole.items() if k not in keys}
        assert MarkdownExporter().render(content)
