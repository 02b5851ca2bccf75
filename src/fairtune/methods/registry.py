"""Which methods there are. Knows names, configs and claims without importing torch; loads the code when a run needs it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, create_model
from pydantic_core import PydanticCustomError

from fairtune.core.plugins import Plugin, discover, note, plugin_of
from fairtune.methods.config import MethodConfig, MethodUse

if TYPE_CHECKING:
    from fairtune.methods.base import Method

GROUP = "fairtune.methods"
"""The entry points of installed packages that add methods."""
KINDS = ("classify", "language_model")


@dataclass(frozen=True)
class Registration:
    name: str
    config: type[MethodConfig]
    implementation: str
    """Where the code is, as `module:Class`; imported when a run needs it."""
    claims: frozenset[str]
    """What the method takes for itself; two methods of one arm may not claim the same."""
    kinds: frozenset[str] = frozenset(KINDS)
    """The kinds of task that it is for."""
    toy: Mapping[str, Any] = field(default_factory=dict)
    """Settings for a task of 200 short texts in two classes, where those that it has by itself do not fit that or are slow."""

    @property
    def help(self) -> str:
        return (self.config.__doc__ or "").strip()

    @property
    def step_factor(self) -> float:
        """That of the settings it has by itself; not asked of a config that has none of its own, since some are slow to make."""
        return 1.0 if self.config.step_factor is MethodConfig.step_factor else self.config().step_factor


_registered: dict[str, Registration] = {}


def register(
    name: str,
    config: type[MethodConfig],
    implementation: str,
    claims: Iterable[str] = (),
    kinds: Iterable[str] = KINDS,
    toy: Mapping[str, Any] | None = None,
) -> None:
    """Make a method known. Refuses anything that would later surprise a user.

    Args:
        implementation: `module:Class` of a `fairtune.methods.base.Method`.
        claims: what it takes for itself, such as `loss` or `q` and `k`.
        kinds: of task that it is for; a study of another kind is refused when it is read.
        toy: settings with which `fairtune.testing` tries it, where its own do not fit 200 short texts in two classes.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"method name {name!r}: use lower-case letters, digits and _")
    if name in _registered:
        raise ValueError(f"method {name!r} is registered twice")
    if not issubclass(config, MethodConfig):
        raise TypeError(f"method {name!r}: its config must derive from MethodConfig")
    if not (config.__doc__ or "").strip() or config.__doc__ == MethodConfig.__doc__:
        raise ValueError(f"method {name!r}: its config needs a docstring, which is the method's help")
    silent = [field for field, info in config.model_fields.items() if not info.description]
    if silent:
        raise ValueError(f"method {name!r}: fields without a description: {', '.join(silent)}")
    needed = [field for field, info in config.model_fields.items() if info.is_required()]
    if needed:
        raise ValueError(
            f"method {name!r}: fields without a default: {', '.join(needed)}; a method works by its name alone"
        )
    if implementation.count(":") != 1:
        raise ValueError(f"method {name!r}: the implementation must be given as 'module:Class'")
    if not set(kinds) or not set(kinds) <= set(KINDS):
        raise ValueError(f"method {name!r}: kinds of task are {', '.join(KINDS)}")
    note("method", name, config.__module__, lambda: _registered.pop(name, None))
    _registered[name] = Registration(name, config, implementation, frozenset(claims), frozenset(kinds), toy or {})


@cache
def _import_own() -> None:
    """Import every method's folder once; its `__init__` registers it."""
    folder = Path(__file__).parent
    for module in pkgutil.iter_modules([str(folder)]):
        if module.ispkg:
            importlib.import_module(f"{__package__}.{module.name}")


def registered() -> dict[str, Registration]:
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
    module, _, name = registered()[use.name].implementation.partition(":")
    method: Method = getattr(importlib.import_module(module), name)(use.config, seed=seed)
    return method


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
    holder = _holder(name, known[name].config)
    return MethodUse(name, getattr(holder.model_validate({name: {} if settings is None else settings}), name))


@cache
def _holder(name: str, config: type[MethodConfig]) -> type[BaseModel]:
    """A model with a method's settings in a field of its name, so that places in messages begin with it."""
    return create_model(name, **{name: (config, ...)})  # type: ignore[call-overload,no-any-return]


def method_use_json_schema() -> dict[str, Any]:
    """The JSON schema of one entry of an arm's list."""
    known = registered()
    properties = {}
    definitions: dict[str, Any] = {}
    for name, registration in known.items():
        schema = registration.config.model_json_schema(ref_template="#/$defs/{model}")
        definitions.update(schema.pop("$defs", {}))
        properties[name] = {**schema, "description": registration.help}
    return {
        "title": "Method",
        "anyOf": [
            {"type": "string", "enum": list(known)},
            {
                "type": "object",
                "properties": properties,
                "additionalProperties": False,
                "minProperties": 1,
                "maxProperties": 1,
            },
        ],
        "$defs": definitions,
    }


def is_control(control: Sequence[MethodUse], acting: Sequence[MethodUse]) -> bool:
    """Whether one arm's methods are another's, with some of them idle that act there."""
    if len(control) != len(acting) or list(control) == list(acting):
        return False
    pairs = zip(control, acting, strict=True)
    return all(a.name == b.name and (a == b or a.config.control_for(b.config)) for a, b in pairs)


def conflicts(uses: Iterable[MethodUse]) -> list[tuple[int, str, str]]:
    """Entries of one arm's list that claim what an earlier one has: (position, the earlier name, the claim)."""
    taken: dict[str, str] = {}
    found = []
    for position, use in enumerate(uses):
        for claim in sorted(registered()[use.name].claims):
            if claim in taken:
                found.append((position, taken[claim], claim))
            taken.setdefault(claim, use.name)
    return found


def clashes(uses: Sequence[MethodUse]) -> list[tuple[int, str]]:
    """Entries of one arm's list that cannot work beside the others, for a reason of their own: (position, the reason)."""
    found = []
    for position, use in enumerate(uses):
        if reason := use.config.clash(uses[:position], uses[position + 1 :]):
            found.append((position, reason))
    return found
