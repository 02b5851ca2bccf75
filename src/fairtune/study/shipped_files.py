"""The study and suite files that come with fairtune, in an installed package as in a checkout of it."""

from __future__ import annotations

from pathlib import Path

from fairtune.core.errors import FairtuneError, nearest, one_of

FOLDERS = ("studies", "suites")
PACKAGE = Path(__file__).parents[1]
HOMES = (PACKAGE / "shipped", PACKAGE.parents[1])
"""Where those folders are: in an installed package, and beside `src/`."""


def find_shipped(path: str | Path) -> Path | None:
    """A file such as `studies/sst2-oelm.yaml`; None where it does not come with fairtune."""
    folder, _, name = Path(path).as_posix().partition("/")
    return next((file for file in _shipped(folder) if file.name == name), None)


def given_or_shipped(file: Path) -> Path:
    """A file that the user names: theirs if there is one, else the shipped one, so that `studies/...` works anywhere."""
    try:
        return file if file.is_file() else find_shipped(file) or file
    except OSError:  # a name that no file system takes; whoever reads it says so
        return file


def require_shipped(path: str) -> Path:
    """The same, which has to be there."""
    found = find_shipped(path)
    if found is None:
        folder = path.partition("/")[0]
        known = [f"{folder}/{file.name}" for file in _shipped(folder)]
        there = f"; there are {one_of(known)}.{nearest(path, known)}" if known else "."
        raise FairtuneError(f"{path}: no such file comes with fairtune{there}")
    return found


def _shipped(folder: str) -> list[Path]:
    home = next((home / folder for home in HOMES if folder in FOLDERS and (home / folder).is_dir()), None)
    return sorted(home.glob("*.yaml")) if home else []
