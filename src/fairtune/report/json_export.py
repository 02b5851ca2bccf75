"""The report as JSON: everything, for other programs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from fairtune.core.files import finite
from fairtune.core.printable import printable_json
from fairtune.report.content import ReportContent


class JsonExporter:
    """Everything the content has but pictures; a number that is not one becomes null."""

    name, file_name = "json", "report.json"

    def render(self, content: ReportContent) -> str:
        told = replace(
            content,
            maps=content.maps and content.maps.without_maps(),
            representation=content.representation and content.representation.without_vectors(),
        )
        text = json.dumps(finite(asdict(told)), indent=1, ensure_ascii=False, allow_nan=False)
        return printable_json(text) + "\n"
