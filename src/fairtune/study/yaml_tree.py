"""YAML read with the line of every value, so that a message can point at it.

YAML 1.2's rules for plain scalars, not PyYAML's 1.1 ones: `2e-5` is a number, `no` and `on` are texts. There are no tags, and
aliases are copies.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from fairtune.core.errors import shown

Path = tuple[str | int, ...]
MOST_VALUES = 20_000
"""Aliases and merged keys spelt out, so that a few lines cannot stand for any number of values."""
MOST_CHARACTERS = 1_000_000
MOST_LEVELS = 50


class YamlProblem(Exception):  # noqa: N818 - turned into a StudyError by the reader
    """The text is not usable YAML."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class _Loader(yaml.SafeLoader):
    """Nodes with the types of YAML 1.2's core schema, and without tags of their own."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - the name PyYAML reads

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if tag := getattr(event, "tag", None):
            raise YamlProblem(_line(event), f"the tag {shown(tag)} is not allowed; write plain values")
        return super().compose_node(parent, index)


_NUMBER = r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
for _type, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]{1,300}", "-+0123456789"),
    ("float", _NUMBER, "-+.0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(_type, re.compile(f"(?:{_pattern})$"), list(_first))
_VALUES: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: text.lower() == "true",
    "null": lambda _: None,
    "int": int,
    "float": lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
}


def parse_yaml(text: str) -> Tree:
    """Read one YAML document.

    Raises:
        YamlProblem: bad syntax, a key given twice, a key that is not text, several documents, a tag, too much.
    """
    if len(text) > MOST_CHARACTERS:
        raise YamlProblem(1, f"a text of {len(text):,} characters; at most {MOST_CHARACTERS:,} are read")
    try:
        loader = _Loader(text)
        node, tree = loader.get_single_node(), Tree()
        if node is not None:
            tree.data = tree.build(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlProblem(mark.line + 1 if mark else 1, error.problem or str(error)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlProblem(line, f"the character {chr(error.character)!r} is not allowed") from None
    except RecursionError:
        raise YamlProblem(1, f"nested too deeply: more than {MOST_LEVELS} levels") from None
    except (ValueError, OverflowError):  # PyYAML reads the numbers of escapes and directives with int() and chr()
        raise YamlProblem(loader.line + 1, "an escape or a directive with a number that means nothing") from None
    return tree


@dataclass
class Tree:
    """Plain data, and the line on which each value stands; the limits are counted while it is built."""

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    values: int = 0

    def build(self, node: Any, path: Path) -> Any:
        self._count(node, len(path))
        self.lines[path] = _line(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, i)) for i, item in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return _VALUES.get(node.tag, str)(node.value)
        data = {}
        for key, (key_node, value) in self._entries(node, len(path)).items():
            data[key] = self.build(value, (*path, key))
            self.lines[*path, key] = _line(key_node)
        return data

    def _entries(self, node: Any, level: int) -> dict[str, tuple[Any, Any]]:
        """The entries of a mapping, by key, after those that it merges; its own win, then those of what is listed first."""
        own, merged = dict[str, tuple[Any, Any]](), dict[str, tuple[Any, Any]]()
        for key_node, value in node.value:
            key = key_node.value
            if key_node.tag == "merge":
                for source in reversed(value.value if isinstance(value, yaml.SequenceNode) else [value]):
                    if not isinstance(source, yaml.MappingNode):
                        raise YamlProblem(_line(source), "expected a mapping, or a list of mappings, for merging")
                    self._count(source, level + 1)
                    merged |= self._entries(source, level + 1)
            elif not isinstance(key_node, yaml.ScalarNode):
                raise YamlProblem(_line(key_node), "a key must be a plain text")
            elif key in own:
                first = _line(own[key][0])
                message = f"{shown(key)} is given twice, first on line {first}; rename or remove one"
                raise YamlProblem(_line(key_node), message)
            else:
                own[key] = (key_node, value)
        return merged | own

    def _count(self, node: Any, level: int) -> None:
        self.values += 1
        if level >= MOST_LEVELS:
            message = f"nested too deeply: more than {MOST_LEVELS} levels, or an alias that contains itself"
            raise YamlProblem(_line(node), message)
        if self.values > MOST_VALUES:
            raise YamlProblem(_line(node), f"more than {MOST_VALUES:,} values, aliases spelt out")


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1
