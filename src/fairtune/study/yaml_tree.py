"""YAML read with the line of every value, so that a message can point at it.

YAML 1.2's core rules for plain scalars, not PyYAML's 1.1 ones: `2e-5` is a number, `no` and `on` are texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]
MOST_VALUES = 100_000


@dataclass
class Tree:
    """Plain data, and the line on which each value stands."""

    data: Any
    lines: dict[Path, int] = field(default_factory=dict)


class YamlProblem(Exception):  # noqa: N818 - turned into a StudyError by the reader
    """The text is no usable YAML."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class _CoreLoader(yaml.SafeLoader):
    """SafeLoader with the core schema's implicit types."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - the name PyYAML reads


_CoreLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(true|True|TRUE|false|False|FALSE)$"), "tTfF")
_CoreLoader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_CoreLoader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]+$"), "-+0123456789")
_CoreLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$"),
    "-+.0123456789",
)
_CoreLoader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"<<$"), "<")
_CONSTANTS = {"true": True, "false": False}
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def parse_yaml(text: str) -> Tree:
    """Read one YAML document.

    Raises:
        YamlProblem: bad syntax, a key given twice, a key that is no text, several documents, a value that holds itself.
    """
    loader = None
    try:
        loader = _CoreLoader(text)
        node = loader.get_single_node()
        tree = Tree(None)
        if node is not None:
            _refuse_repeated_keys(node, set())
            tree.data = _build(loader, node, (), tree.lines, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlProblem(mark.line + 1 if mark else 1, error.problem or str(error)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlProblem(line, f"the character {chr(error.character)!r} is not allowed") from None
    except yaml.YAMLError as error:
        raise YamlProblem(1, str(error).splitlines()[0]) from None
    except RecursionError:
        raise YamlProblem(1, "nested too deeply, or an alias that contains itself") from None
    finally:
        if loader is not None:
            loader.dispose()
    return tree


def _build(loader: _CoreLoader, node: Any, path: Path, lines: dict[Path, int], above: tuple[Any, ...]) -> Any:
    if any(node is parent for parent in above):
        raise YamlProblem(node.start_mark.line + 1, "an alias that contains itself")
    if len(lines) > MOST_VALUES:
        raise YamlProblem(node.start_mark.line + 1, f"more than {MOST_VALUES:,} values, aliases spelt out")
    above = (*above, node)
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
        raise _refused_tag(node)
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        mapping = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlProblem(key_node.start_mark.line + 1, "a key must be a plain text")
            key = key_node.value
            mapping[key] = _build(loader, value_node, (*path, key), lines, above)
            lines[(*path, key)] = key_node.start_mark.line + 1
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, item, (*path, i), lines, above) for i, item in enumerate(node.value)]
    return _scalar(node)


def _refuse_repeated_keys(node: Any, seen: set[int]) -> None:
    """Before any merging, which itself puts a key twice into a mapping; an aliased mapping is looked at once."""
    if not isinstance(node, yaml.CollectionNode) or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeated_keys(item, seen)
        return
    first: dict[str, int] = {}
    for key_node, value_node in node.value:
        key, line = key_node.value, key_node.start_mark.line + 1
        if isinstance(key, str) and key_node.tag != "tag:yaml.org,2002:merge":
            if key in first:
                raise YamlProblem(line, f"'{key}' is given twice, first on line {first[key]}; rename or remove one")
            first[key] = line
        _refuse_repeated_keys(value_node, seen)


def _refused_tag(node: Any) -> YamlProblem:
    return YamlProblem(node.start_mark.line + 1, f"the tag {node.tag!r} is not allowed; write plain values")


def _scalar(node: Any) -> Any:
    kind, text = node.tag.rpartition(":")[2], node.value
    if kind == "null":
        return None
    if kind == "str":
        return text
    try:
        if kind == "bool":
            return _CONSTANTS[text.lower()]
        if kind == "int":
            return int(text)
        if kind == "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except (KeyError, ValueError):
        raise YamlProblem(node.start_mark.line + 1, f"{text!r} is not of the kind its tag says ({kind})") from None
    raise _refused_tag(node)
