"""Pydantic's errors in fairtune's words: where, what was found, what is allowed, the nearest spelling."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from pydantic_core import ErrorDetails

from fairtune.core.errors import nearest, one_of, shown
from fairtune.settings.values import LONGEST_NAME, RESERVED
from fairtune.study.allowed import Fragment, allowed_text, fragment_at, options, study_schema
from fairtune.study.fields import nearest_field
from fairtune.study.problems import MOST_SHOWN, Problem
from fairtune.study.source import Written
from fairtune.study.yaml_tree import Path

NAME_RULE = (
    f"letters, digits, _, + and -, starting with a letter or digit, at most {LONGEST_NAME} characters; "
    f"not {one_of(RESERVED)}"
)
Placed = tuple[Path, ErrorDetails]


def problems_of(errors: list[ErrorDetails], written: Written, schema: Fragment | None = None) -> list[Problem]:
    """One problem for each place; a value that fits no alternative is one problem, not one for each.

    A list is not too short because its entries are wrong.

    Args:
        schema: of the kind of file, with its references followed; None is a study.
    """
    schema = study_schema() if schema is None else schema
    groups: dict[object, list[Placed]] = {}
    for number, error in enumerate(errors[: 10 * MOST_SHOWN]):
        path, choice = _place(error, written.data, schema)
        groups.setdefault(number if choice is None else choice, []).append((path, error))
    kept = [one for group in groups.values() for one in _fitting(group)]
    inside = {path[:length] for path, _ in kept for length in range(len(path))}
    real = [(path, error) for path, error in kept if error["type"] != "too_short" or path not in inside]
    found = [written.problem(path, _message(path, error, schema)) for path, error in real[:MOST_SHOWN]]
    if len(kept) > MOST_SHOWN:
        found.append(Problem(written.label, "", f"and more; only the first {MOST_SHOWN} problems are listed"))
    return found


def _fitting(group: list[Placed]) -> list[Placed]:
    """The errors of a value with alternatives that are reported: of a mapping, those of the alternative that is one."""
    first = min(group, key=lambda one: len(one[0]))
    if not isinstance(first[1]["input"], dict):
        return [first]
    return [one for one in group if len(one[0]) > len(first[0]) or not one[1]["type"].endswith("_type")] or [first]


def _place(error: ErrorDetails, data: Any, schema: Fragment) -> tuple[Path, Path | None]:
    """Where in the file an error is, and the place with alternatives that it is below, if any."""
    path: Path = ()
    choice: Path | None = None
    loc = [part for part in error["loc"] if part != "[key]"]
    for left, part in enumerate(loc, start=1 - len(loc)):
        fragment = fragment_at(path, schema)
        inside = dict(enumerate(data)) if isinstance(data, list) else data if isinstance(data, dict) else {}
        known = part in inside or any(part in option.get("properties", ()) for option in options(fragment))
        is_key = isinstance(part, int) or known or (left == 0 and error["type"] == "extra_forbidden")
        if is_key or not fragment.keys() & {"anyOf", "oneOf"}:
            path = (*path, part)
            data = inside.get(part)
        else:
            choice = choice or path  # the part is pydantic's name of an alternative
    return path, choice


def _message(path: Path, error: ErrorDetails, schema: Fragment) -> str:
    kind, context, found = error["type"], error.get("ctx", {}), error.get("input")
    fragment = context.get("fragment") or fragment_at(path, schema)  # fields of a method may depend on each other
    help = str(fragment.get("description", ""))
    if kind == "extra_forbidden":
        kinds = options(fragment_at(path[:-1], schema))
        keys = list(dict.fromkeys(key for one in kinds for key in one.get("properties", ())))
        hint = nearest(str(path[-1]), keys) or nearest_field(".".join(map(str, path)))
        return f"unknown key; allowed: {one_of(keys)}.{hint}"
    if kind == "missing":
        return f"is missing. {help}".strip()
    if kind == "unknown":
        known, name = context["allowed"], context["name"]
        return f"unknown {context['what']} '{name}'; allowed: {one_of(known)}.{nearest(name, known)}"
    if kind == "value_error" and str(context["error"]):
        return str(context["error"])
    if kind in ("too_long", "string_too_long"):
        unit = "characters" if kind == "string_too_long" else "entries"
        size = f"{len(found):,}" if isinstance(found, Sized) else "more"
        return f"found {shown(found)}, {size} {unit}; allowed: at most {context['max_length']:,}. {help}".strip()
    if kind == "too_short" and found in ({}, [], ()):
        return f"is empty; at least one is needed. {help}".strip()
    if error["loc"] and error["loc"][-1] == "[key]":
        return f"found {shown(path[-1])}; allowed: {NAME_RULE}."
    words = [value for one in options(fragment) for value in (*one.get("enum", ()), one.get("const"))]
    hint = nearest(found, [value for value in words if value]) if isinstance(found, str) else ""
    allowed = allowed_text(fragment) if fragment else error["msg"]
    return f"found {shown(found)}; allowed: {allowed}.{hint} {help}".strip()
