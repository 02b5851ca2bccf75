"""Where a study comes from: a YAML file or a mapping, read once into plain data that knows where each value stood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any

from fairtune.core.errors import (
    FairtuneError,
    nearest,
    one_of,
    shown,
)
from fairtune.core.files import read_regular
from fairtune.study.plain_data import plain_copy
from fairtune.study.problems import Problem, StudyError
from fairtune.study.shipped_files import given_or_shipped
from fairtune.study.yaml_tree import MOST_CHARACTERS, Path, YamlProblem, parse_yaml

StudySource = str | FilePath | Mapping[str, Any]


@dataclass(frozen=True)
class Written:
    """A study as it was written.

    Args:
        places: where each value stands.
        label: what messages call it.
        base: where relative paths start.
        removed: arms that an override took out, each with that option and what it was.
    """

    data: dict[str, Any]
    places: dict[Path, str]
    label: str
    base: FilePath
    removed: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def copy(self) -> Written:
        """One that may be changed."""
        return replace(self, data=plain_copy(self.data), places=dict(self.places), removed=dict(self.removed))


def read_source(source: StudySource) -> Written:
    """A study's data, unchecked.

    Raises:
        FairtuneError: there is no such file, it cannot be read, or it is no YAML mapping.
    """
    if isinstance(source, Mapping):
        try:
            return Written(plain_copy(dict(source)), {}, "study", FilePath.cwd())
        except ValueError as error:
            raise StudyError([Problem("study", "", str(error))]) from None
    file = given_or_shipped(FilePath(source))
    try:
        tree = parse_yaml(_text(file))
    except YamlProblem as problem:
        raise StudyError([Problem(f"{file}:{problem.line}", "", f"not valid YAML: {problem.message}")]) from None
    if not isinstance(tree.data, dict):
        found = "nothing" if tree.data is None else shown(tree.data)
        raise StudyError(
            [Problem(str(file), "", f"found {found}; a study file is a mapping that starts with 'study: NAME'")]
        )
    places = {path: f"{file}:{line}" for path, line in tree.lines.items()}
    return Written(tree.data, places, str(file), file.resolve().parent)


def _text(file: FilePath) -> str:
    try:
        return read_regular(file, MOST_CHARACTERS).decode("utf-8")
    except FileNotFoundError:
        others = [str(p) for p in sorted(file.parent.glob("*.y*ml"))] if file.parent.is_dir() else []
        there = f" In that folder: {one_of(others)}." if others else ""
        raise FairtuneError(f"{file}: there is no such study file.{nearest(str(file), others) or there}") from None
    except UnicodeDecodeError as error:
        raise FairtuneError(f"{file}: not UTF-8 text (byte {error.start}); save the study file as UTF-8.") from None
    except OSError as error:
        raise FairtuneError(f"{file}: cannot be read: {error.strerror}.") from None
    except ValueError:
        raise FairtuneError(f"{shown(str(file))}: no file has such a name.") from None
