"""The console that everything is shown on, where no text is taken for markup and no control code comes through; and own pipes."""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterable
from typing import Any

from rich import console as rich_console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from fairtune.core.printable import LINES, printable


class Console(rich_console.Console):
    """A console that styles only what is given as `Text`, and writes out control codes.

    It looks at texts before they are laid out, so that wrapping fits, and at every segment after, so that nothing is missed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text, LINES), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and (safe := printable(renderable.plain, LINES)) != renderable.plain:
            style, renderable = renderable.style, renderable.blank_copy(safe)
            renderable.style = style  # of the whole: codes move where the parts of several styles begin
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, LINES), segment.style)


def say(text: str, end: str = "\n") -> None:
    """Write to standard error at once, for processes that show only lines."""
    sys.stderr.write(printable(text, LINES) + end)
    sys.stderr.flush()


class _PrintableRecord(logging.LogRecord):
    def getMessage(self) -> str:  # noqa: N802 - logging's name
        return printable(super().getMessage(), LINES)


def make_messages_printable() -> None:
    """Write out control codes in this process's messages; only for processes of our own, never where we are a library."""
    formatted = warnings.formatwarning
    warnings.formatwarning = lambda *args, **kwargs: printable(formatted(*args, **kwargs), LINES)
    logging.setLogRecordFactory(_PrintableRecord)
    sys.excepthook = lambda *error: say("".join(traceback.format_exception(*error)), end="")


def own_pipes() -> tuple[int, int]:
    """Standard input and output under numbers that no library knows. Call it before anything reads or prints.

    Libraries then read nothing, and what they print goes to standard error, never among the messages.
    """
    kept = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return kept
