"""Examples of the documentation, to be run as tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def examples(page: str, language: str) -> dict[str, str]:
    """The code blocks of a page in one language, by the heading they stand under."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found: dict[str, str] = {}
    heading, block = "", None
    for line in text.splitlines():
        if block is not None and line == "```":
            assert heading not in found, f"two examples under '{heading}'"
            found[heading], block = "\n".join(block), None
        elif block is not None:
            block.append(line)
        elif line == f"```{language}":
            block = []
        elif line.startswith("#"):
            heading = line.lstrip("# ")
    return found


def run_python(code: str, replace: dict[str, Path], where: str) -> dict[str, Any]:
    """Run an example with folders in place of hub ids; returns the names it leaves."""
    for hub_id, folder in replace.items():
        code = code.replace(f'"{hub_id}"', repr(str(folder)))
    names: dict[str, Any] = {}
    exec(compile(code, where, "exec"), names)
    return names
