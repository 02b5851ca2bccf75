"""The report as JSON: everything, for other programs."""

from __future__ import annotations

from typing import Any

from fairtune.analysis.results import Results
from fairtune.core.files import indented_json
from fairtune.core.printable import printable_json
from fairtune.report.comparison_record import comparison_records
from fairtune.report.content import ReportContent
from fairtune.report.exporter import TextExporter
from fairtune.report.json_keys import KEYS, REPORT_SCHEMA
from fairtune.report.result_summary import FILE, result_summary
from fairtune.report.sections.catalogue import SECTIONS


class JsonExporter(TextExporter):
    """Everything the content has but pictures; a number that is not one becomes null."""

    name, file_name = "json", "report.json"

    def files(self, content: ReportContent, results: Results) -> dict[str, bytes]:
        """The report, and the summary of it in the published shape."""
        summary = printable_json(indented_json(result_summary(content, results))) + "\n"
        return {**super().files(content, results), FILE: summary.encode("utf-8", "replace")}

    def render(self, content: ReportContent) -> str:
        found: dict[str, Any] = dict.fromkeys(KEYS)  # in their order; what other sections add comes after
        found |= {"schema": REPORT_SCHEMA, "header": content.header, "comparisons": comparison_records(content)}
        for section in SECTIONS:
            gathered = content.sections[section.name]
            if gathered is not None or section.json is None:
                found |= section.json_keys(gathered)
        return printable_json(indented_json(found)) + "\n"
