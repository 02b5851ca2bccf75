"""The kinds of adapter that the installed PEFT library has, read from its source: importing it would import torch."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fairtune.methods.peft.annotations import as_type, union

INFRASTRUCTURE = frozenset(
    {"peft_type", "auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "peft_version"}
)
"""Fields that say how an adapter is stored, not what it is."""
UNKNOWN = object()
"""The default of a field whose default is made by code."""


@dataclass(frozen=True)
class KindField:
    """One field of a kind's config.

    Args:
        type: what a study may write there; Any where the library's annotation names a class of its own.
    """

    name: str
    type: Any
    default: Any
    help: str


@dataclass(frozen=True)
class Kind:
    """One of the library's methods.

    Args:
        name: the library's, in lower case.
        config: the name of its config class.
        sets: what the kind settles, so that a study does not.
    """

    name: str
    config: str
    fields: tuple[KindField, ...]
    sets: tuple[tuple[str, Any], ...] = ()


def library_folder() -> Path | None:
    """Where the library is installed, found without importing it."""
    spec = importlib.util.find_spec("peft")
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) if locations else None


@cache
def library_kinds(folder: Path) -> Mapping[str, Kind]:
    """Every kind that the library registers, by name, and `dora`, its LoRA with one switch set."""
    files = [folder / "config.py", *sorted(folder.glob("tuners/*.py")), *sorted(folder.glob("tuners/*/config.py"))]
    classes = {node.name: node for file in files for node in _config_classes(file)}
    found = {}
    for file in sorted(folder.glob("tuners/*/__init__.py")):
        for name, config in _registrations(file):
            found[name] = Kind(name, config, tuple(_fields(classes, config).values()))
    if "lora" in found:
        switches = tuple(field for field in found["lora"].fields if field.name != "use_dora")
        found["dora"] = Kind("lora", found["lora"].config, switches, (("use_dora", True),))
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


def _fields(classes: Mapping[str, ast.ClassDef], name: str) -> dict[str, KindField]:
    """The fields of a dataclass, those of its bases first."""
    if name not in classes:
        return {}
    fields: dict[str, KindField] = {}
    for base in classes[name].bases:
        fields |= _fields(classes, base.id) if isinstance(base, ast.Name) else {}
    for node in classes[name].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            field = _field(node.target.id, node, name)
            if field is not None and field.name not in INFRASTRUCTURE:
                fields[field.name] = field
    return fields


def _field(name: str, node: ast.AnnAssign, owner: str) -> KindField | None:
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
    return KindField(
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
