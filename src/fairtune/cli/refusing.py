"""How words are refused that are no option, verb or value: typer's own messages, with codes in them written out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from fairtune.core.printable import LINES, printable


class Verbs(TyperGroup):
    """All verbs. A file whose name is a code may be given by a `*` that nobody looked at."""

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
    """What all refusals are; typer exports one of its kinds only."""
    return typer.BadParameter.__base__
