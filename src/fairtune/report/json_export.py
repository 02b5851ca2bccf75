"""The report as JSON: everything, for other programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from fairtune.files import finite
from fairtune.report.content import ReportContent


class JsonExporter:
    """Everything the content has; a number that is not one becomes null."""

    name, file_name = "json", "report.json"

    def render(self, content: ReportContent) -> str:
        return json.dumps(finite(asdict(content)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
