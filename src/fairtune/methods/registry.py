"""Which methods there are. Imports no torch: a method's file imports it inside the hooks that need it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, create_model
from pydantic_core import PydanticCustomError

from fairtune.core.plugins import Plugin, discover, note, plugin_of
from fairtune.methods.base import KINDS, Method
from fairtune.methods.config import MethodConfig, MethodUse

GROUP = "fairtune.methods"
"""The entry points of installed packages that add methods."""
MethodClass = TypeVar("MethodClass", bound=type[Method])

_registered: dict[str, type[Method]] = {}


def register(method: MethodClass) -> MethodClass:
    """Make a method known, as a decorator of its class. Refuses anything that would later surprise a user."""
    name, config = getattr(method, "name", None), getattr(method, "config_class", None)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"method name {name!r} of {method.__name__}: use lower-case letters, digits and _")
    if name in _registered:
        raise ValueError(f"method {name!r} is registered twice")
    if not isinstance(config, type) or not issubclass(config, MethodConfig):
        raise TypeError(f"method {name!r}: its config_class must derive from MethodConfig")
    if not (config.__doc__ or "").strip() or config.__doc__ == MethodConfig.__doc__:
        raise ValueError(f"method {name!r}: its config needs a docstring, which is the method's help")
    if silent := [field for field, info in config.model_fields.items() if not info.description]:
        raise ValueError(f"method {name!r}: fields without a description: {', '.join(silent)}")
    if needed := [field for field, info in config.model_fields.items() if info.is_required()]:
        raise ValueError(
            f"method {name!r}: fields without a default: {', '.join(needed)}; a method works by its name alone"
        )
    if not method.kinds or not set(method.kinds) <= set(KINDS):
        raise ValueError(f"method {name!r}: kinds of task are {', '.join(KINDS)}")
    note("method", name, method.__module__, lambda: _registered.pop(name, None))
    _registered[name] = method
    return method


@cache
def _import_own() -> None:
    """Import every module of this folder once; those of methods register them."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")


def registered() -> dict[str, type[Method]]:
    """All methods by name: the package's own, those of installed plug-ins, and those of modules that a study named.

    Raises:
        PluginError: an installed plug-in cannot be used.
    """
    _import_own()
    discover(GROUP)
    return dict(_registered)


def method_plugin(name: str) -> Plugin | None:
    """The plug-in that a method comes from; None of the package's own."""
    return plugin_of("method", name)


def create_method(use: MethodUse, seed: int) -> Method:
    """The method itself, ready to prepare a model."""
    return registered()[use.name](use.config, seed=seed)


def parse_method_use(value: Any) -> MethodUse:
    """Read one entry of an arm's list: a name, or a name with its settings."""
    if isinstance(value, MethodUse):
        return value
    if isinstance(value, str):
        value = {value: {}}
    if not isinstance(value, dict) or len(value) != 1:
        raise PydanticCustomError("method_form", "not a method")
    ((name, settings),) = value.items()
    known = registered()
    if not isinstance(name, str) or name not in known:
        raise PydanticCustomError(
            "unknown", "unknown method", {"what": "method", "name": str(name)[:60], "allowed": list(known)}
        )
    holder = _holder(name, known[name].config_class)
    return MethodUse(name, getattr(holder.model_validate({name: {} if settings is None else settings}), name))


@cache
def _holder(name: str, config: type[MethodConfig]) -> type[BaseModel]:
    """A model with a method's settings in a field of its name, so that places in messages begin with it."""
    return create_model(name, **{name: (config, ...)})  # type: ignore[call-overload,no-any-return]


def method_use_json_schema() -> dict[str, Any]:
    """The JSON schema of one entry of an arm's list."""
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for name, method in registered().items():
        schema = method.config_class.model_json_schema(ref_template="#/$defs/{model}")
        definitions.update(schema.pop("$defs", {}))
        properties[name] = {**schema, "description": method.help()}
    settings = {"type": "object", "properties": properties, "additionalProperties": False}
    return {
        "title": "Method",
        "anyOf": [
            {"type": "string", "enum": list(properties)},
            {**settings, "minProperties": 1, "maxProperties": 1},
        ],
        "$defs": definitions,
    }


def is_control(control: Sequence[MethodUse], acting: Sequence[MethodUse]) -> bool:
    """Whether one arm's methods are another's, with some of them idle that act there."""
    if len(control) != len(acting) or list(control) == list(acting):
        return False
    pairs = zip(control, acting, strict=True)
    return all(a.name == b.name and (a == b or a.config.control_for(b.config)) for a, b in pairs)


def conflicts(uses: Sequence[MethodUse]) -> list[tuple[int, str]]:
    """Entries of one arm's list that cannot work with the others: (position, the reason)."""
    taken: dict[str, str] = {}
    found = []
    for position, use in enumerate(uses):
        for part in sorted(registered()[use.name].excludes):
            if part in taken:
                reason = f"'{use.name}' and '{taken[part]}' both change the {part}; keep one of them in this arm"
                found.append((position, reason))
            taken.setdefault(part, use.name)
    for position, use in enumerate(uses):
        if clash := use.config.clash(uses[:position], uses[position + 1 :]):
            found.append((position, clash))
    return found
