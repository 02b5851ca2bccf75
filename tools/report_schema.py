"""Write the JSON Schema of report.json into the package, and its tables into docs/report-json.md, both from the code.

    python tools/report_schema.py

A test compares: a key that is renamed or taken away is seen, and then the number in `fairtune.report/1` has to grow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fairtune.report
from fairtune.report.json_schema import FILE, make_schema

SCHEMA = Path(fairtune.report.__file__).parent / FILE
PAGE = Path(__file__).parents[1] / "docs" / "report-json.md"
TABLES = {"keys": None, "comparison": "ComparisonRecord", "row": "ArmRow", "summary": "Summary", "header": "Header"}
"""Marks of the page, and whose properties stand there; None is the whole file."""


def schema_text() -> str:
    return json.dumps(make_schema(), indent=1, ensure_ascii=False) + "\n"


def filled_page(page: str) -> str:
    """The page with every table made anew."""
    schema = make_schema()
    for mark, name in TABLES.items():
        found = schema if name is None else schema["$defs"][name]
        lines = ["| key | holds | what it is |", "|---|---|---|", *map(_row, found["properties"].items())]
        begin, _, rest = page.partition(f"<!-- {mark} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        assert end, f"docs/report-json.md has no place for {mark}"
        page = f"{begin}<!-- {mark} -->\n" + "".join(f"{line}\n" for line in lines) + end + after
    return page


def _row(item: tuple[str, Mapping[str, Any]]) -> str:
    name, schema = item
    told = str(schema.get("description", "")).rstrip(".").replace("None", "null").replace("|", "\\|")
    return f"| `{name}` | {kind_text(schema)} | {told} |"


def kind_text(schema: Mapping[str, Any]) -> str:
    """A type in words: a list of texts, a number or null."""
    if "const" in schema:
        return f"`{schema['const']}`"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(map(kind_text, schema["anyOf"]))
    kinds = schema.get("type", "anything")
    if kinds == "array":
        return f"list of {kind_text(schema['items'])}" if "items" in schema else "list of two or more"
    if kinds == "object":
        return (
            f"mapping to {kind_text(schema['additionalProperties'])}" if "additionalProperties" in schema else "mapping"
        )
    return " or ".join({"string": "text"}.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    PAGE.write_text(filled_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
