"""Problems of a study file, told so that the user can mend them: where, what was found, what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic_core import ErrorDetails

from fairtune.errors import FairtuneError, nearest, one_of
from fairtune.study.fields import Fragment, allowed_text, alternatives, fragment_at, schema_root
from fairtune.study.values import RESERVED
from fairtune.study.yaml_tree import Path


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Args:
        where: file and line, or the command-line option.
        path: the key, dotted.
    """

    where: str
    path: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.path, self.message) if part)


class StudyError(FairtuneError):
    """A study cannot be used; lists every problem found."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(p) for p in problems))

    def as_json(self) -> list[dict[str, str]]:
        return [asdict(p) for p in self.problems]


@dataclass(frozen=True)
class Origins:
    """Where each value of a study came from: a line of the file, a profile's line, or an option."""

    default: str
    places: Mapping[Path, str]

    def of(self, path: Path) -> str:
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return self.default


def dotted(path: Path) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")


def problems_of(errors: list[ErrorDetails], origins: Origins) -> list[Problem]:
    """Pydantic's errors in fairtune's words, in the order of the file where lines are known."""
    return [_problem(error, origins) for error in errors]


def _problem(error: ErrorDetails, origins: Origins) -> Problem:
    path = tuple(part for part in error["loc"] if part != "[key]" and not str(part).startswith("<"))
    kind, context, found = error["type"], error.get("ctx", {}), error.get("input")
    if kind == "extra_forbidden":
        allowed = list(_properties(path[:-1]))
        message = f"unknown key; allowed: {one_of(allowed)}.{nearest(str(path[-1]), allowed)}"
    elif kind == "missing":
        message = f"is missing. {_help(path)}"
    elif kind == "unknown":
        message = (
            f"unknown {context['kind']} '{context['name']}'; allowed: {one_of(context['allowed'])}."
            f"{nearest(context['name'], context['allowed'])}"
        )
    elif kind == "too_short" and found in ({}, [], ()):
        message = f"is empty; at least one is needed. {_help(path)}"
    else:
        if error["loc"] and error["loc"][-1] == "[key]":
            found, allowed_words = path[-1], "letters, digits, _, + and -, starting with a letter or digit"
            allowed_words += f"; not {one_of(RESERVED)}"
        else:
            fragment = fragment_at(path)
            allowed_words = allowed_text(fragment) if fragment else error["msg"]
        hint = nearest(found, context_words(path)) if isinstance(found, str) else ""
        message = f"found {shown(found)}; allowed: {allowed_words}.{hint} {_help(path)}"
    return Problem(origins.of(path), dotted(path), message.strip())


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def context_words(path: Path) -> list[str]:
    fragment = fragment_at(path)
    return [str(v) for option in alternatives(fragment) for v in option.get("enum", ())] if fragment else []


def _properties(path: Path) -> dict[str, Fragment]:
    fragment = fragment_at(path) if path else schema_root()
    found: dict[str, Fragment] = {}
    for option in alternatives(fragment or {}):
        found.update(option.get("properties", {}))
    return found


def _help(path: Path) -> str:
    fragment = fragment_at(path)
    return str(fragment["description"]) if fragment and "description" in fragment else ""
