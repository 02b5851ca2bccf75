"""The study and suite files that come with fairtune, in an installed package as in a checkout of it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from fairtune.core.errors import FairtuneError, nearest, one_of

FOLDERS = ("studies", "suites")
PACKAGE = Path(__file__).parents[1]
HOMES = (PACKAGE / "shipped", PACKAGE.parents[1])
"""Where those folders are: in an installed package, and beside `src/`."""


def find_shipped(path: str | Path) -> Path | None:
    """A file such as `studies/sst2-oelm.yaml`; None where it does not come with fairtune."""
    parts = PurePosixPath(Path(path).as_posix()).parts
    if len(parts) != 2 or parts[0] not in FOLDERS or parts[1] in (".", ".."):
        return None
    return next((home / parts[0] / parts[1] for home in HOMES if _is_file(home / parts[0] / parts[1])), None)


def given_or_shipped(file: Path) -> Path:
    """A file that somebody names: theirs if there is one, else the shipped one, so that `studies/...` works anywhere."""
    return file if _is_file(file) else find_shipped(file) or file


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file system takes; whoever reads it says so
        return False


def require_shipped(path: str) -> Path:
    """The same, which has to be there.

    Raises:
        FairtuneError: it is not.
    """
    found = find_shipped(path)
    if found is None:
        known = shipped_names(path.partition("/")[0])
        there = f"; there are {one_of(known)}.{nearest(path, known)}" if known else "."
        raise FairtuneError(f"{path}: no such file comes with fairtune{there}")
    return found


def shipped_names(folder: str) -> list[str]:
    """The files of a shipped folder."""
    home = next((home / folder for home in HOMES if folder in FOLDERS and (home / folder).is_dir()), None)
    return [] if home is None else sorted(f"{folder}/{file.name}" for file in home.glob("*.yaml"))
