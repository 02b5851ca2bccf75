"""What a method can override and what its hooks are given, read from the source: some of it imports torch, and this does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
CLASSES = {
    "methods/base.py": ("Method", "TrainingData", "Step", "Moment"),
    "methods/config.py": ("MethodConfig",),
    "models/declarations.py": ("Declared",),
}
"""Where what the author of a method meets is documented: the method, its settings, and the types of arguments."""


@dataclass(frozen=True)
class Hook:
    """A class, or a hook or property of one.

    Args:
        signature: as Python has it; of a class its name.
    """

    name: str
    signature: str
    help: str


def hook_docs() -> list[Hook]:
    """Every class, each followed by its own hooks."""
    found: list[Hook] = []
    for file, names in CLASSES.items():
        tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        for name in names:
            found += [Hook(name, name, ast.get_docstring(classes[name]) or ""), *_members(classes[name])]
    return found


def _members(owner: ast.ClassDef) -> Iterator[Hook]:
    for node in owner.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            decorators = [ast.unparse(one) for one in node.decorator_list]
            if "classmethod" in decorators:
                continue  # for callers, not to be overridden
            arguments = "" if decorators else f"({ast.unparse(node.args)})"
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            yield Hook(f"{owner.name}.{node.name}", f"{node.name}{arguments}{returns}", ast.get_docstring(node) or "")
