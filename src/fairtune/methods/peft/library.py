"""The types of adapter that the installed PEFT library has, read from its source: importing it would import torch."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import StringConstraints, WithJsonSchema

PLAIN = {
    "bool": bool,
    "dict": dict[str, Any],
    "float": float,
    "int": int,
    "list": list[Any],
    "None": None,
    "set": list[Any],
    "str": str,
    "tuple": list[Any],
}
"""Types that a study file can hold. Sets and tuples are lists there."""


INFRASTRUCTURE = frozenset(
    {"peft_type", "auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "peft_version"}
)
"""Fields that say how an adapter is stored, not what it is."""
UNKNOWN = object()
"""The default of a field whose default is made by code."""


def as_type(node: ast.expr) -> Any:
    """The type that an annotation means; Any for names it does not know."""
    if isinstance(node, ast.Constant):
        return as_type(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node.value
    if isinstance(node, ast.Name):
        return PLAIN.get(node.id, Any)
    if isinstance(node, ast.BinOp):
        return union([as_type(node.left), as_type(node.right)])
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _generic(node.value.id.lower(), parts)
    return Any


def _generic(name: str, parts: list[ast.expr]) -> Any:
    if name == "literal":
        return _literal([ast.literal_eval(part) for part in parts])
    inner = [as_type(part) for part in parts if not (isinstance(part, ast.Constant) and part.value is ...)]
    if name == "optional":
        return union([*inner, None])
    if name == "union":
        return union(inner)
    if name in ("list", "set", "tuple"):
        return list[union(inner)]  # type: ignore[misc]
    if name == "dict":
        return dict[inner[0], inner[1]]  # type: ignore[valid-type]
    return Any


def union(types: list[Any]) -> Any:
    """Any of the types."""
    return Any if Any in types else reduce(or_, types)


def _literal(words: list[Any]) -> Any:
    """The words, where `name_[something]` stands for every word that starts with `name_`."""
    patterns = [word for word in words if isinstance(word, str) and "[" in word]
    exact = tuple(word for word in words if word not in patterns)
    return union([*([Literal[exact]] if exact else []), *map(_pattern, patterns)])


def _pattern(word: str) -> Any:
    pattern = f"^{word.partition('[')[0]}[A-Za-z0-9]{{1,3}}$"
    schema = {"type": "string", "pattern": pattern, "title": f"a text like {word}"}
    return Annotated[str, StringConstraints(pattern=pattern), WithJsonSchema(schema)]


@dataclass(frozen=True)
class AdapterField:
    """One field of an adapter's config.

    Args:
        type: what a study may write there; Any where the library's annotation names a class of its own.
    """

    name: str
    type: Any
    default: Any
    help: str


@dataclass(frozen=True)
class AdapterType:
    """One of the library's methods.

    Args:
        name: the library's, in lower case.
        config: the name of its config class.
        sets: what the type of adapter fixes, so that a study does not set it.
    """

    name: str
    config: str
    fields: tuple[AdapterField, ...]
    sets: tuple[tuple[str, Any], ...] = ()


def library_folder() -> Path | None:
    """Where the library is installed, found without importing it."""
    spec = importlib.util.find_spec("peft")
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) if locations else None


@cache
def library_adapter_types(folder: Path) -> Mapping[str, AdapterType]:
    """Every adapter type that the library registers, by name, and `dora`, its LoRA with one switch set."""
    files = [folder / "config.py", *sorted(folder.glob("tuners/*.py")), *sorted(folder.glob("tuners/*/config.py"))]
    classes = {node.name: node for file in files for node in _config_classes(file)}
    found = {}
    for file in sorted(folder.glob("tuners/*/__init__.py")):
        for name, config in _registrations(file):
            found[name] = AdapterType(name, config, tuple(_fields(classes, config).values()))
    if "lora" in found:
        switches = tuple(field for field in found["lora"].fields if field.name != "use_dora")
        found["dora"] = AdapterType("lora", found["lora"].config, switches, (("use_dora", True),))
    return dict(sorted(found.items()))


def _config_classes(file: Path) -> Iterator[ast.ClassDef]:
    source = file.read_text(encoding="utf-8")
    if re.search(r"^class \w+Config(Mixin)?\b", source, re.MULTILINE):  # parsing is slow, and some files are long
        yield from (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))


def _registrations(file: Path) -> Iterator[tuple[str, str]]:
    """Name and config class of every `register_peft_method(name=..., config_cls=...)`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "register_peft_method":
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            name, config = given.get("name"), given.get("config_cls")
            if isinstance(name, ast.Constant) and isinstance(config, ast.Name):
                yield str(name.value), config.id


def _fields(classes: Mapping[str, ast.ClassDef], name: str) -> dict[str, AdapterField]:
    """The fields of a dataclass, those of its bases first."""
    if name not in classes:
        return {}
    fields: dict[str, AdapterField] = {}
    for base in classes[name].bases:
        fields |= _fields(classes, base.id) if isinstance(base, ast.Name) else {}
    for node in classes[name].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            field = _field(node.target.id, node, name)
            if field is not None and field.name not in INFRASTRUCTURE:
                fields[field.name] = field
    return fields


def _field(name: str, node: ast.AnnAssign, owner: str) -> AdapterField | None:
    """One field; None if it cannot be given."""
    options: dict[str | None, ast.expr] = {"default": node.value} if node.value is not None else {}
    if isinstance(node.value, ast.Call):
        options = {keyword.arg: keyword.value for keyword in node.value.keywords}
    if "init" in options and _value(options["init"]) is False:
        return None
    default = _value(options["default"]) if "default" in options else UNKNOWN
    notes = _value(options["metadata"]) if "metadata" in options else {}
    help = notes.get("help") if isinstance(notes, dict) else None
    type = as_type(node.annotation)
    return AdapterField(
        name,
        union([type, None]) if default is None else type,
        default,
        _one_line(help) or f"See {owner} in the documentation of PEFT.",
    )


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return UNKNOWN


def _one_line(help: Any) -> str:
    """A help text as one paragraph; some are written as a tuple by a comma too many."""
    text = " ".join(map(str, help)) if isinstance(help, tuple) else str(help or "")
    return " ".join(text.split())
