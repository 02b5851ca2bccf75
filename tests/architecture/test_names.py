"""Names that a stranger can guess: modules are called by nouns, and a class name means one class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import fairtune

PACKAGE = Path(fairtune.__file__).parent
NOUNS = {
    "analysis.resampling",  # the bootstrap, called so in statistics
    "core.seeding",
    "methods.bpsom.pruning",
    "methods.label_smoothing",  # called so in the literature
    "tasks.reading",  # the sub-room that reads rows
    "testing",  # public: what authors of plug-ins test with
    "training",  # a room
    "training.language_modelling",  # the objective
}
"""Modules and rooms whose names end in -ing and are nouns of their own."""


def _modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _name(file: Path) -> str:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_module_is_named_after_an_activity() -> None:
    """`performing`, `gathering`, `opening` say that something is done, not what is in the file."""
    names = [_name(file) for file in _modules()]
    gerunds = [name for name in names if name.endswith("ing") and name not in NOUNS]
    assert not gerunds, f"call these modules by what they hold: {', '.join(gerunds)}"


def test_no_class_name_is_defined_twice() -> None:
    """Nested and private classes count too: a search for a name must end at one place."""
    homes: dict[str, list[str]] = defaultdict(list)
    for file in _modules():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(f"{_name(file)}:{node.lineno}")
    twice = {name: places for name, places in sorted(homes.items()) if len(places) > 1}
    assert not twice, "\n".join(f"{name}: {', '.join(places)}" for name, places in twice.items())
