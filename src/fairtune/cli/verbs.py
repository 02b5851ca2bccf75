"""Verbs that are known by name and one line, and loaded when they are called: `--help` imports none of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from fairtune.cli.verb_page import Entry, VerbPage, verb_page
from fairtune.core.printable import LINES, printable


@dataclass(frozen=True)
class Verb:
    """A verb before it is loaded.

    Args:
        summary: the first line of its docstring (of a group: its help), which `--help` shows; a test holds them together.
        short: what a list of verbs says instead, where the summary is long.
        example: a whole command that a newcomer could give, the first thing that its own help shows.
        home: `module:function` in the package of its group, or `module:group` for verbs below it; both as it is named, if absent.
        group: the heading that `--help` lists it under.
        see: the last line of its own help: where to read on.
    """

    name: str
    summary: str
    example: str = ""
    home: str = ""
    group: str = "Verbs"
    short: str = ""
    see: str = ""

    def load(self, package: str) -> Any:
        """The command, from its module."""
        module, _, name = (self.home or f"{self.name}:{self.name}").partition(":")
        found = getattr(importlib.import_module(f"{package}.{module}"), name)
        if isinstance(found, typer.Typer):
            return get_group(found)
        alone = typer.Typer(add_completion=False)
        alone.command(self.name, cls=VerbCommand)(found)
        command: Any = get_command(alone)
        command.verb = self
        return command


class VerbCommand(TyperCommand):
    """A verb, with help of its own making."""

    verb: Verb

    def page(self, words: str) -> VerbPage:
        """Its help.

        Args:
            words: what it is called by.
        """
        return verb_page(self, words, self.verb.example, self.verb.see)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(f"{self.page(_words(ctx)).text()}\n")

    def get_usage(self, ctx: Any) -> str:
        return f"Usage: {self.page(_words(ctx)).usage}"


class _LoadedVerbs(Mapping[str, Any]):
    """The commands by name, each loaded when it is first taken."""

    def __init__(self, package: str, verbs: tuple[Verb, ...]) -> None:
        self._package = package
        self._verbs = {verb.name: verb for verb in verbs}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._verbs[name].load(self._package)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._verbs)

    def __len__(self) -> int:
        return len(self._verbs)


class VerbGroup(TyperGroup):
    """Verbs of one package. Refusals are made printable: a `*` that nobody looked at may give a file whose name is a code."""

    package: ClassVar[str]
    verbs: ClassVar[tuple[Verb, ...]]
    example: ClassVar[str] = ""
    see: ClassVar[str] = ""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _LoadedVerbs(self.package, self.verbs)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - theirs asks each command for its name
        return list(self.commands)

    def page(self, words: str) -> VerbPage:
        """Its help, which loads none of the verbs.

        Args:
            words: what it is called by.
        """
        plain = verb_page(self, words, self.example, f"`{words} VERB --help` tells more. {self.see}".strip())
        groups = {group: [_entry(verb) for verb in self.verbs if verb.group == group] for group in self._groups()}
        names = " | ".join(value for entry in plain.lists["Options"] for value in entry.values)
        return replace(plain, usage=f"{words} VERB ... [{names}]", lists=groups, together=True)

    def _groups(self) -> list[str]:
        return list(dict.fromkeys(verb.group for verb in self.verbs))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(f"{self.page(_words(ctx)).text()}\n")

    def get_usage(self, ctx: Any) -> str:
        return f"Usage: {self.page(_words(ctx)).usage}"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and self.no_args_is_help:  # theirs takes the help for printed already
            from fairtune.cli.command import print_text

            print_text(ctx.get_help())
            ctx.exit()
        return list(super().parse_args(ctx, args))

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _printable_refusals():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _printable_refusals():
            return super().invoke(ctx)


def _entry(verb: Verb) -> Entry:
    return Entry(verb.name, verb.short or verb.summary)


def _words(ctx: Any) -> str:
    """What a verb is called by, however the command was started."""
    names: list[str] = []
    while ctx.parent is not None:
        names.insert(0, str(ctx.info_name))
        ctx = ctx.parent
    return " ".join(["fairtune", *names])


@contextmanager
def _printable_refusals() -> Iterator[None]:
    try:
        yield
    except _usage_error() as error:
        error.message = printable(str(error.message), LINES)
        raise


def _usage_error() -> Any:
    """What all refusals are; typer exports one of its subclasses only."""
    return typer.BadParameter.__base__
