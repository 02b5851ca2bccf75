"""Types from annotations that were read and not run."""

from __future__ import annotations

import ast
from functools import reduce
from operator import or_
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
