"""Verbs that are known by name and one line, and loaded when they are called: `--help` imports none of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from fairtune.core.printable import LINES, printable


@dataclass(frozen=True)
class Verb:
    """A verb before it is loaded.

    Args:
        summary: the first line of its docstring (of a group: its help), which `--help` shows; a test holds them together.
        home: `module:function` in the package of its group, or `module:group` for verbs below it; both as it is named, if absent.
        epilog: makes the end of its own help, when that is shown.
    """

    name: str
    summary: str
    home: str = ""
    epilog: Callable[[], str] | None = None

    def load(self, package: str) -> Any:
        """The command, from its module."""
        module, _, name = (self.home or f"{self.name}:{self.name}").partition(":")
        found = getattr(importlib.import_module(f"{package}.{module}"), name)
        if isinstance(found, typer.Typer):
            return get_group(found)
        alone = typer.Typer(add_completion=False)
        alone.command(self.name, cls=VerbCommand)(found)
        command: Any = get_command(alone)
        command.made_epilog = self.epilog
        return command


class VerbCommand(TyperCommand):
    """A verb; the end of its help is made when it is shown."""

    made_epilog: Callable[[], str] | None = None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.epilog = None if self.made_epilog is None else self.made_epilog()
        super().format_help(ctx, formatter)


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

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _LoadedVerbs(self.package, self.verbs)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - theirs asks each command for its name
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        loaded = self.commands
        self.commands = {verb.name: TyperCommand(verb.name, help=verb.summary) for verb in self.verbs}
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = loaded

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _printable_refusals():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _printable_refusals():
            return super().invoke(ctx)


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
