"""Where a study comes from: a YAML file or a mapping, read once into plain data that knows where each value stood."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from fairtune.core.errors import FairtuneError, nearest, one_of, shown
from fairtune.core.files import read_regular
from fairtune.study.problems import Problem, StudyError, dotted
from fairtune.study.yaml_tree import MOST_CHARACTERS, Path, YamlProblem, parse_yaml


@dataclass(frozen=True)
class Written:
    """A study as it was written.

    Args:
        places: where each value stands: a line of the file, or an option.
        label: what messages call it.
        base: where relative paths start.
    """

    data: dict[str, Any]
    places: dict[Path, str]
    label: str
    base: FilePath

    def copy(self) -> Written:
        """One that may be changed."""
        return replace(self, data=plain_copy(self.data), places=dict(self.places))

    def where(self, path: Path) -> str:
        """Where a value stands, or what it is part of."""
        known = (self.places[path[:length]] for length in range(len(path), -1, -1) if path[:length] in self.places)
        return next(known, self.label)

    def problem(self, path: Path, message: str) -> Problem:
        return Problem(self.where(path), dotted(path), message)


FOLDERS = ("studies", "suites")
PACKAGE = FilePath(__file__).parents[1]
HOMES = (PACKAGE / "shipped", PACKAGE.parents[1])
"""Where the files that come with fairtune are: in an installed package, and beside `src/`."""
StudySource = str | FilePath | Mapping[str, Any] | Written


def read_source(source: StudySource, kind: str = "study") -> Written:
    """A study's data, unchecked; what was read before is taken as it is.

    Args:
        kind: what the file holds, in messages, and the key that it starts with: a study or a suite.
    """
    if isinstance(source, Written):
        return source.copy()
    if isinstance(source, Mapping):
        try:
            return Written(plain_copy(dict(source)), {}, kind, FilePath.cwd())
        except RecursionError:
            raise StudyError([Problem(kind, "", "nested too deeply, perhaps in itself")]) from None
    file = FilePath(source)
    with contextlib.suppress(OSError, ValueError):  # a name that no file system takes; reading it says so
        file = file if file.is_file() else find_shipped(file) or file  # so that `studies/...` works anywhere
    try:
        tree = parse_yaml(_text(file, kind))
    except YamlProblem as problem:
        raise StudyError([Problem(f"{file}:{problem.line}", "", f"not valid YAML: {problem.message}")]) from None
    if not isinstance(tree.data, dict):
        found = "nothing" if tree.data is None else shown(tree.data)
        message = f"found {found}; a {kind} file is a mapping that starts with '{kind}: NAME'"
        raise StudyError([Problem(str(file), "", message)])
    places = {path: f"{file}:{line}" for path, line in tree.lines.items()}
    return Written(tree.data, places, str(file), file.resolve().parent)


def _text(file: FilePath, kind: str) -> str:
    try:
        return read_regular(file, MOST_CHARACTERS).decode("utf-8")
    except FileNotFoundError:
        others = [str(p) for p in sorted(file.parent.glob("*.y*ml"))] if file.parent.is_dir() else []
        there = f" In that folder: {one_of(others)}." if others else ""
        raise FairtuneError(f"{file}: there is no such {kind} file.{nearest(str(file), others) or there}") from None
    except UnicodeDecodeError as error:
        raise FairtuneError(f"{file}: not UTF-8 text (byte {error.start}); save the {kind} file as UTF-8.") from None
    except OSError as error:
        raise FairtuneError(f"{file}: cannot be read: {error.strerror}.") from None
    except ValueError:
        raise FairtuneError(f"{shown(str(file))}: no file has such a name.") from None


def find_shipped(path: str | FilePath) -> FilePath | None:
    """A file such as `studies/sst2-oelm.yaml`; None where it does not come with fairtune."""
    folder, _, name = FilePath(path).as_posix().partition("/")
    home = next((home / folder for home in HOMES if folder in FOLDERS and (home / folder).is_dir()), None)
    return next((file for file in home.glob("*.yaml") if file.name == name), None) if home else None


def plain_copy(value: Any) -> Any:
    """The data with mappings and lists of its own, so that changing one place changes no other."""
    if isinstance(value, dict):
        return {key: plain_copy(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return [plain_copy(part) for part in value]
    return value


def absolute_folder(given: Any, base: FilePath) -> str | None:
    """A folder's whole path, which starts at the study file if it is relative; None for what is not a folder."""
    with contextlib.suppress(OSError, ValueError):  # a folder above it may not be looked into, or none has such a name
        if isinstance(given, str) and (given.startswith((".", "~/", "/")) or (base / expanded(given)).is_dir()):
            return str((base / expanded(given)).resolve())
    return None


def expanded(given: str) -> FilePath:
    """With the home folder for `~`; as it is, where that has none."""
    try:
        return FilePath(given).expanduser()
    except RuntimeError:
        return FilePath(given)
