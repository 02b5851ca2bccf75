"""Files of the runs folder that the dashboard serves as they are: written reports, and nothing else."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

FOLDER = "report"
TYPES = {
    ".html": "text/html; charset=utf-8", ".md": "text/plain; charset=utf-8", ".json": "application/json",
    ".csv": "text/csv; charset=utf-8", ".tex": "text/plain; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
    ".pdf": "application/pdf", ".gif": "image/gif",
}  # fmt: skip
"""What reports are made of; nothing else is served."""
PLAIN_NAME = re.compile(r"[\w+-][\w.+ -]*")
MOST_REPORTS = 50


def reports_of(runs: Path, study: str) -> list[tuple[str, str]]:
    """The written reports of a study: what each is, and where."""
    home = runs / study / FOLDER
    try:
        if not _is_inside(home, runs):  # a link, perhaps to a whole disk
            return []
        found = [path for path in sorted(home.rglob("*")) if path.is_file() and path.suffix in TYPES]
    except (OSError, RuntimeError):
        return []
    pages = [path for path in found if path.suffix in (".html", ".md", ".json", ".csv", ".tex", ".pdf")]
    pages.sort(key=lambda path: (len(path.relative_to(home).parts), path.suffix != ".html", path.name))
    return [
        (name, f"/study/{quote(study, safe='')}/{FOLDER}/{quote(name)}")
        for path in pages[:MOST_REPORTS]
        if report_file(runs, study, name := path.relative_to(home).as_posix()) is not None
    ]


def report_file(runs: Path, study: str, name: str) -> Path | None:
    """The file of a report; None where there is no such file, or it is not inside the report's folder, links followed."""
    parts = name.split("/")
    if not all(PLAIN_NAME.fullmatch(part) for part in parts):
        return None
    home = runs / study / FOLDER
    try:
        found = home.joinpath(*parts).resolve(strict=True)
        inside = _is_inside(found, home) and _is_inside(home, runs)
    except (OSError, RuntimeError, ValueError):
        return None
    return found if inside and found.is_file() and found.suffix in TYPES else None


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve(strict=True).is_relative_to(folder.resolve(strict=True))


def report_policy() -> str:
    """What a report may do in a browser: show itself, and run the one script that reports have, whatever else stands in it."""
    script = (files("fairtune.report") / "page.js").read_text(encoding="utf-8")
    allowed = b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{allowed}'; style-src 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-popups"
    )
