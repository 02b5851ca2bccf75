"""Checking an arm's settings against a kind's fields, in words that name the field and what it allows."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from fairtune.core.errors import shown
from fairtune.methods.peft.bounds import add_bounds, excess
from fairtune.methods.peft.limits import UNFIT_KINDS, unfit_setting
from fairtune.methods.peft.reading import UNKNOWN, Kind, KindField, library_folder, library_kinds

NOT_INSTALLED = "the PEFT library is not installed; run `pip install 'fairtune[peft]'`"

Problem = PydanticCustomError | str
"""What is wrong with a value: a kind of problem that studies have words for, or the words."""


def kinds() -> dict[str, Kind]:
    """The kinds that a study can use, by the name it uses; none if the library is not installed."""
    folder = library_folder()
    known = library_kinds(folder) if folder else {}
    return {name: kind for name, kind in known.items() if name not in UNFIT_KINDS}


def checked(name: Any, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The kind's name in the library, and its settings there.

    Args:
        name: of the kind, as the study has it.

    Raises:
        ValidationError: a field is unknown or has a value that the library would not take.
        ValueError: the library is not installed, or refuses the settings for what they are together.
    """
    known = kinds()
    if not known:
        raise ValueError(NOT_INSTALLED)
    if not isinstance(name, str) or name not in known:
        unfit = UNFIT_KINDS.get(name) if isinstance(name, str) else None
        refused = f"a study cannot train {name}: {unfit}" if unfit else _unknown("type", name, known)
        raise _refusal({"type": (name, refused)})
    kind = known[name]
    fields = {field.name: field for field in kind.fields}
    problems = {key: (value, found) for key, value in settings.items() if (found := _problem(kind, fields, key, value))}
    if problems:
        raise _refusal(problems)
    taken = {key: _adapter(fields[key].type).validate_python(value) for key, value in settings.items()}
    whole = {**taken, **dict(kind.sets)}
    complaint = _complaint(kind, whole)
    if complaint:
        place = next((key for key in settings if f"`{key}`" in complaint), None)
        text = f"the PEFT library refuses this: {complaint}"
        raise _refusal({place: (settings[place], text)}) if place else ValueError(text)
    return kind.name, whole


def library_config(kind: str, settings: Mapping[str, Any]) -> Any:
    """The library's own config; this imports it."""
    import peft

    return peft.get_peft_config({"peft_type": kind.upper(), **copy.deepcopy(dict(settings))})


def field_schema(field: KindField) -> dict[str, Any]:
    """The JSON schema of one field, with its help and its default."""
    default = {} if field.default is UNKNOWN else {"default": field.default}
    return {**add_bounds(field.name, _adapter(field.type).json_schema()), **default, "description": field.help}


def _problem(kind: Kind, fields: Mapping[str, KindField], name: str, value: Any) -> Problem | None:
    if name not in fields:
        return _unknown(f"field of {kind.config}", name, fields)
    if beyond := excess(name, value):
        return f"found {shown(value)}; allowed: {beyond}. {fields[name].help}"
    try:
        _adapter(fields[name].type).validate_python(value)
    except ValidationError:
        return PydanticCustomError("field", "not a value of this field", {"fragment": field_schema(fields[name])})
    reason = unfit_setting(kind.name, name, value)
    return f"a study cannot use {shown(value)} here: {reason}" if reason else None


def _complaint(kind: Kind, settings: Mapping[str, Any]) -> str | None:
    """The first line of what the library itself says against the settings."""
    try:
        library_config(kind.name, settings)
    except Exception as error:
        lines = str(error).strip().splitlines()
        return lines[0].strip() if lines else type(error).__name__
    return None


@cache
def _adapter(type: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type, config=ConfigDict(strict=True, allow_inf_nan=False))


def _unknown(what: str, name: Any, allowed: Iterable[str]) -> PydanticCustomError:
    return PydanticCustomError("unknown", "unknown", {"kind": what, "name": str(name)[:60], "allowed": list(allowed)})


def _refusal(problems: Mapping[str, tuple[Any, Problem]]) -> ValidationError:
    return ValidationError.from_exception_data("peft", [_detail(*problem) for problem in problems.items()])


def _detail(name: str, found: tuple[Any, Problem]) -> InitErrorDetails:
    value, problem = found
    if isinstance(problem, str):
        return InitErrorDetails(type="value_error", loc=(name,), input=value, ctx={"error": problem})
    return InitErrorDetails(type=problem, loc=(name,), input=value)
