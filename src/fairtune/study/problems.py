"""Problems of a study file, worded so that the user can fix them: where, what was found, what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import asdict, dataclass
from typing import Any

from pydantic_core import ErrorDetails

from fairtune.core.errors import (
    FairtuneError,
    nearest,
    one_of,
    shown,
)
from fairtune.settings.claims import CLAIM_ERRORS
from fairtune.settings.values import LONGEST_NAME, RESERVED
from fairtune.study.allowed import allowed_text
from fairtune.study.fragments import Fragment, alternatives, fragment_at, schema_root
from fairtune.study.yaml_tree import Path

MOST_SHOWN = 100
"""Problems that are reported for one study; whoever has more than that has another problem."""


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

    def as_json(self) -> list[dict[str, Any]]:
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
    """Pydantic's errors in fairtune's words; a value that fits no alternative is one problem, not one for each.

    A list is not too short because its entries are wrong.
    """
    kept: dict[object, tuple[Path, ErrorDetails]] = {}
    for number, error in enumerate(errors[: 10 * MOST_SHOWN]):
        path, choice = _place(error)
        key = number if choice is None else choice
        if key not in kept or len(path) < len(kept[key][0]):
            kept[key] = (path, error)
    inside = {path[:length] for path, _ in kept.values() for length in range(len(path))}
    real = [(path, error) for path, error in kept.values() if error["type"] != "too_short" or path not in inside]
    found = [_problem(path, error, origins) for path, error in real[:MOST_SHOWN]]
    if len(kept) > MOST_SHOWN:
        found.append(Problem(origins.default, "", f"and more; only the first {MOST_SHOWN} problems are listed"))
    return found


def _place(error: ErrorDetails) -> tuple[Path, Path | None]:
    """Where in the file an error is, and the place with alternatives that it is below, if any."""
    path: Path = ()
    choice: Path | None = None
    loc = [part for part in error["loc"] if part != "[key]" and not str(part).startswith("<")]
    unknown_key = len(loc) - 1 if error["type"] == "extra_forbidden" else None
    for position, part in enumerate(loc):
        if (
            position != unknown_key
            and isinstance(part, str)
            and fragment_at((*path, part)) is None
            and _has_choice(path)
        ):
            choice = choice or path  # the part is pydantic's name of an alternative
        else:
            path = (*path, part)
    return path, choice


def _has_choice(path: Path) -> bool:
    fragment = fragment_at(path) or {}
    return "anyOf" in fragment or "oneOf" in fragment


def _problem(path: Path, error: ErrorDetails, origins: Origins) -> Problem:
    error_type, context, found = error["type"], error.get("ctx", {}), error.get("input")
    fragment = context.get("fragment") or fragment_at(path)  # a method may have fields that depend on other fields
    if error_type == "extra_forbidden":
        allowed = list(_properties(path[:-1]))
        message = f"unknown key; allowed: {one_of(allowed)}.{nearest(str(path[-1]), allowed)}"
    elif error_type == "missing":
        message = f"is missing. {_help(fragment)}"
    elif error_type == "unknown":
        message = (
            f"unknown {context['what']} '{context['name']}'; allowed: {one_of(context['allowed'])}."
            f"{nearest(context['name'], context['allowed'])}"
        )
    elif error_type in CLAIM_ERRORS:
        message = error["msg"]
    elif error_type == "value_error":
        message = str(context["error"])
    elif error_type in ("too_long", "string_too_long"):
        unit = "characters" if error_type == "string_too_long" else "entries"
        size = f"{len(found):,}" if isinstance(found, Sized) else "more"
        message = f"found {shown(found)}, {size} {unit}; allowed: at most {context['max_length']:,}. {_help(fragment)}"
    elif error_type == "too_short" and found in ({}, [], ()):
        message = f"is empty; at least one is needed. {_help(fragment)}"
    else:
        if error["loc"] and error["loc"][-1] == "[key]":
            found, allowed_words = path[-1], "letters, digits, _, + and -, starting with a letter or digit"
            allowed_words += f", at most {LONGEST_NAME} characters; not {one_of(RESERVED)}"
        else:
            allowed_words = allowed_text(fragment, found) if fragment else error["msg"]
        hint = nearest(found, context_words(fragment)) if isinstance(found, str) else ""
        message = f"found {shown(found)}; allowed: {allowed_words}.{hint} {_help(fragment)}"
    return Problem(origins.of(path), dotted(path), message.strip())


def context_words(fragment: Fragment | None) -> list[str]:
    return [str(v) for option in alternatives(fragment) for v in option.get("enum", ())] if fragment else []


def _properties(path: Path) -> dict[str, Fragment]:
    fragment = fragment_at(path) if path else schema_root()
    found: dict[str, Fragment] = {}
    for option in alternatives(fragment or {}):
        found.update(option.get("properties", {}))
    return found


def _help(fragment: Fragment | None) -> str:
    return str(fragment["description"]) if fragment and "description" in fragment else ""
