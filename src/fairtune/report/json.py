"""The report as JSON: everything, for other programs."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

from fairtune.core.files import finite
from fairtune.core.printable import printable_json
from fairtune.report.content import ReportContent
from fairtune.report.exporter import TextExporter
from fairtune.report.sections.catalogue import SECTIONS

KEYS = (
    "header", "design", "cautions", "findings", "rows", "ranking", "left_out", "raw_differences", "audit", "data", "samples",
    "mistakes",
    "representation", "maps", "curves", "timing_notes", "timing", "cards", "starting_notes", "machine", "failures", "retried",
    "unfinished", "exclusions", "warnings", "runs", "notes",
)  # fmt: skip
"""The order in which files have always had them; what other sections add comes after."""


class JsonExporter(TextExporter):
    """Everything the content has but pictures; a number that is not one becomes null."""

    name, file_name = "json", "report.json"

    def render(self, content: ReportContent) -> str:
        found: dict[str, Any] = {"header": content.header}
        for section in SECTIONS:
            found |= section.json_keys(content.sections[section.name])
        names = sorted(found, key=lambda name: KEYS.index(name) if name in KEYS else len(KEYS))
        ordered = {name: found[name] for name in names}
        text = json.dumps(finite(_plain(ordered)), indent=1, ensure_ascii=False, allow_nan=False)
        return printable_json(text) + "\n"


def _plain(value: Any) -> Any:
    """Dataclasses as mappings, at any depth."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
