"""The help of a verb: how it is called, what it does, an example, its arguments and options; for the terminal and the docs."""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairtune.core.printable import printable

NARROWEST, WIDEST = 60, 100
"""Columns of the terminal that are used."""
LEFT_WIDEST = 26
"""Columns of the names of options; longer ones have a line of their own."""


@dataclass(frozen=True)
class Entry:
    """A line of a list.

    Args:
        name: an argument, an option with its value, or a verb.
        values: the names that it is given by on the command line.
    """

    name: str
    help: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class VerbPage:
    """The help of a verb or of a group of verbs.

    Args:
        words: what it is called by, such as `fairtune data card`.
        summary: what it does, in a line.
        more: further paragraphs.
        lists: entries by the heading above them.
        ending: where to read on.
        together: summary, example and where to read on stand at the top without gaps, so that a long list fits a screen.
    """

    words: str
    usage: str
    summary: str
    more: tuple[str, ...]
    example: str
    lists: dict[str, list[Entry]]
    ending: str
    together: bool = False

    def text(self, width: int | None = None) -> str:
        """The page for a terminal, at most so many columns wide; as wide as it is, if not given."""
        columns = width or min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)
        summary, ending = _filled(self.summary, columns), _filled(self.ending, columns)
        example = f"Example: {self.example}" if self.example else ""
        head = ["\n".join(filter(None, [summary, example, ending]))] if self.together else [summary, example]
        parts = [
            _filled(f"Usage: {self.usage}", columns, "       "),
            *head,
            "\n".join(_filled(paragraph, columns) for paragraph in self.more),
            *(list_text(heading, entries, columns) for heading, entries in self.lists.items() if entries),
            *([] if self.together else [ending]),
        ]
        return "\n\n".join(filter(None, parts))


def verb_page(command: Any, words: str, example: str = "", ending: str = "") -> VerbPage:
    """The help of a command.

    Args:
        words: what it is called by.
        example: a whole command.
    """
    summary, *more = [" ".join(part.split()) for part in inspect.cleandoc(command.help or "").split("\n\n")]
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    arguments = [param for param in shown if param.param_type_name == "argument"]
    options = [_option(param) for param in shown if param.param_type_name != "argument"]
    options.append(Entry("-h, --help", "Show this message.", ("-h", "--help")))
    return VerbPage(
        words,
        " ".join([words, *map(_usage, arguments), "[OPTIONS]"]),
        summary,
        tuple(more),
        example,
        {"Arguments": [Entry(_metavar(one), _help(one)) for one in arguments], "Options": options},
        ending,
    )


def list_text(heading: str, entries: Sequence[Entry], columns: int) -> str:
    """Entries below each other, their texts beside them."""
    left = min(max((len(entry.name) for entry in entries), default=0), LEFT_WIDEST)
    lines = [f"{heading}:"]
    for entry in entries:
        wrapped = textwrap.wrap(printable(entry.help), max(columns - left - 4, 20)) or [""]
        names = [printable(entry.name), *[""] * len(wrapped)]
        if len(names[0]) > left:
            wrapped = ["", *wrapped]
        lines += [f"  {name:{left}}  {text}".rstrip() for name, text in zip(names, wrapped, strict=False)]
    return "\n".join(lines)


def _filled(text: str, columns: int, indent: str = "") -> str:
    return textwrap.fill(text, columns, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def _option(param: Any) -> Entry:
    names = sorted(param.opts, key=len)
    value = "" if param.is_flag else f" {_metavar(param)}"
    return Entry(f"{', '.join(names)}{value}", _help(param), tuple(names))


def _metavar(param: Any) -> str:
    text = str(param.metavar or param.name.upper())
    return text[1:-1] if text.startswith("[") and text.endswith("]") else text


def _usage(param: Any) -> str:
    name = f"{_metavar(param)}{' ...' if param.nargs != 1 else ''}"
    return name if param.required else f"[{name}]"


def _help(param: Any) -> str:
    """Its help, with what it is if it is not given."""
    default = param.default
    if param.param_type_name != "argument" and param.required:
        return f"{param.help} (required)"
    if not param.show_default or default in (None, "", False, ()) or callable(default):
        return str(param.help)
    return (
        f"{param.help} (default: {default:g})" if isinstance(default, float) else f"{param.help} (default: {default})"
    )
