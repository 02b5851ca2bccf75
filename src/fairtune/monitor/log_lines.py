"""The latest lines of workers' logs: what libraries printed, without what a progress bar painted over."""

from __future__ import annotations

from pathlib import Path

from fairtune.core.printable import printable

TAIL = 16_384
"""Bytes of a log's end that are read."""
LONGEST = 500
"""Characters of a line; a library may print a tensor."""


def last_lines(logs: Path, most: int) -> list[tuple[str, str]]:
    """Of all logs of a study, the one that was written last at the end; each line with the worker whose it is."""
    found: list[tuple[str, str]] = []
    for path in sorted(_logs(logs), key=_written):
        found += [(worker_of(path), line) for line in log_tail(path, most)]
    return found[-most:]


def workers_with_logs(logs: Path) -> dict[str, Path]:
    """The log of each worker."""
    return {worker_of(path): path for path in sorted(_logs(logs))}


def worker_of(path: Path) -> str:
    return path.name.removeprefix("worker-").removesuffix(".log")


def log_tail(path: Path, most: int) -> list[str]:
    """The last lines of a log; none where it cannot be read."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - TAIL))
            content = log.read(TAIL)
    except OSError:
        return []
    lines = content.decode("utf-8", "replace").split("\n")
    if len(content) == TAIL:
        lines = lines[1:]  # the first is cut off
    painted = (line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return [_cut(printable(line)) for line in painted if line.strip()][-most:]


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."


def _logs(logs: Path) -> list[Path]:
    """Files of the folder itself: a link in a folder that came from elsewhere may lead to what is nobody's business."""
    try:
        return [path for path in logs.glob("worker-*.log") if path.is_file() and not path.is_symlink()]
    except OSError:
        return []


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
