"""YAML read with the line of every value, so that a message can point at it.

YAML 1.2's core rules for plain scalars, not PyYAML's 1.1 ones: `2e-5` is a number, `no` and `on` are texts.

Aliases are copies here, so a few lines can stand for any number of values: everything is counted while it is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from fairtune.core.errors import shown

Path = tuple[str | int, ...]
MOST_VALUES = 20_000
MOST_CHARACTERS = 1_000_000
MOST_LEVELS = 50
LONGEST_KEY = 1000
MOST_DIGITS = 300
"""Of a whole number; more than any field allows, and few enough that it can be shown and compared with a float."""


@dataclass
class Tree:
    """Plain data, and the line on which each value stands."""

    data: Any
    lines: dict[Path, int] = field(default_factory=dict)


class YamlProblem(Exception):  # noqa: N818 - turned into a StudyError by the reader
    """The text is not usable YAML."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class _CoreLoader(yaml.SafeLoader):
    """SafeLoader with the core schema's implicit types, which stops at what is too large to be read."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - the name PyYAML reads

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values = self._level = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._values += 1
        self._level += 1
        if self._values > MOST_VALUES or self._level > MOST_LEVELS:
            raise _too_much(self.line + 1, values=self._values > MOST_VALUES)
        node = super().compose_node(parent, index)
        self._level -= 1
        return node


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
_MERGE = "tag:yaml.org,2002:merge"
_COLLECTIONS = {yaml.MappingNode: "tag:yaml.org,2002:map", yaml.SequenceNode: "tag:yaml.org,2002:seq"}


def parse_yaml(text: str) -> Tree:
    """Read one YAML document.

    Raises:
        YamlProblem: bad syntax, a key given twice, a key that is not text, several documents, a value that holds itself, too much.
    """
    if len(text) > MOST_CHARACTERS:
        raise YamlProblem(1, f"a text of {len(text):,} characters; at most {MOST_CHARACTERS:,} are read")
    loader = None
    try:
        loader = _CoreLoader(text)
        node = loader.get_single_node()
        if node is None:
            return Tree(None)
        _refuse_repeated_keys(node, set())
        builder = _Builder()
        return Tree(builder.build(node, (), ()), builder.lines)
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
    except (ValueError, OverflowError):  # PyYAML reads the numbers of escapes and directives with int() and chr()
        line = loader.line + 1 if loader is not None else 1
        raise YamlProblem(line, "an escape or a directive with a number that means nothing") from None
    finally:
        if loader is not None:
            loader.dispose()


class _Builder:
    """Plain data out of nodes.

    Attributes:
        lines: on which each value stands.
    """

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self._characters = self._merged = 0
        self._entries: dict[int, dict[str, tuple[Any, Any]]] = {}

    def build(self, node: Any, path: Path, above: tuple[Any, ...]) -> Any:
        line = node.start_mark.line + 1
        if any(node is parent for parent in above):
            raise YamlProblem(line, "an alias that contains itself")
        if len(self.lines) >= MOST_VALUES or len(path) >= MOST_LEVELS:
            raise _too_much(line, values=len(self.lines) >= MOST_VALUES)
        self.lines[path] = line
        for node_class, tag in _COLLECTIONS.items():
            if isinstance(node, node_class) and node.tag != tag:
                raise _refused_tag(node)
        above = (*above, node)
        if isinstance(node, yaml.MappingNode):
            mapping = {}
            for key, (key_node, value_node) in self._entries_of(node, above).items():
                self._count(key_node)
                mapping[key] = self.build(value_node, (*path, key), above)
                self.lines[(*path, key)] = key_node.start_mark.line + 1
            return mapping
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, i), above) for i, item in enumerate(node.value)]
        self._count(node)
        return _scalar(node)

    def _entries_of(self, node: Any, above: tuple[Any, ...]) -> dict[str, tuple[Any, Any]]:
        """The entries of a mapping, by key, and of those that it merges: its own win, then those of what is listed first.

        A mapping is looked at once, however often it is merged, and every entry that is taken over is counted.
        """
        if id(node) in self._entries:
            return self._entries[id(node)]
        own: dict[str, tuple[Any, Any]] = {}
        merged: dict[str, tuple[Any, Any]] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlProblem(key_node.start_mark.line + 1, "a key must be a plain text")
            if len(key_node.value) > LONGEST_KEY:
                raise YamlProblem(key_node.start_mark.line + 1, f"a key of more than {LONGEST_KEY:,} characters")
            if key_node.tag != _MERGE:
                own[key_node.value] = (key_node, value_node)
                continue
            for source in _merge_sources(value_node):
                if any(source is parent for parent in above):
                    raise YamlProblem(source.start_mark.line + 1, "an alias that contains itself")
                entries = self._entries_of(source, (*above, source))
                self._merged += len(entries) + 1
                if self._merged > MOST_VALUES:
                    raise _too_much(key_node.start_mark.line + 1)
                merged.update(entries)
        found = self._entries[id(node)] = {**merged, **own}
        return found

    def _count(self, node: Any) -> None:
        self._characters += len(node.value)
        if self._characters > MOST_CHARACTERS:
            raise YamlProblem(
                node.start_mark.line + 1, f"more than {MOST_CHARACTERS:,} characters of text, aliases spelt out"
            )


def _merge_sources(node: Any) -> list[Any]:
    """What `<<` merges, the last one first, since each is written over by those after it."""
    sources = list(reversed(node.value)) if isinstance(node, yaml.SequenceNode) else [node]
    for source in sources:
        if not isinstance(source, yaml.MappingNode):
            line = source.start_mark.line + 1
            raise YamlProblem(line, f"expected a mapping, or a list of mappings, for merging, but found a {source.id}")
    return sources


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
        if isinstance(key, str) and key_node.tag != _MERGE:
            if key in first:
                raise YamlProblem(
                    line, f"{shown(key)} is given twice, first on line {first[key]}; rename or remove one"
                )
            first[key] = line
        _refuse_repeated_keys(value_node, seen)


def _too_much(line: int, values: bool = True) -> YamlProblem:
    if values:
        return YamlProblem(line, f"more than {MOST_VALUES:,} values, aliases spelt out")
    return YamlProblem(line, f"nested too deeply: more than {MOST_LEVELS} levels")


def _refused_tag(node: Any) -> YamlProblem:
    return YamlProblem(node.start_mark.line + 1, f"the tag {shown(node.tag)} is not allowed; write plain values")


def _scalar(node: Any) -> Any:
    tag, text = node.tag.removeprefix("tag:yaml.org,2002:"), node.value
    if tag == "null":
        return None
    if tag == "str":
        return text
    if tag == "int" and len(text) > MOST_DIGITS:
        raise YamlProblem(
            node.start_mark.line + 1, f"{shown(text)} is a whole number of more than {MOST_DIGITS} digits"
        )
    try:
        if tag == "bool":
            return _CONSTANTS[text.lower()]
        if tag == "int":
            return int(text)
        if tag == "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except (KeyError, ValueError):
        raise YamlProblem(node.start_mark.line + 1, f"{shown(text)} is not of the type its tag says ({tag})") from None
    raise _refused_tag(node)
