"""The console that everything is shown on: no text is taken for markup or emoji, and no code in one reaches the terminal."""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from rich import console as rich_console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from fairtune.core.printable import CODES, LINES, printable


class Console(rich_console.Console):
    """A console that styles only what is given as `Text`, and writes out what a terminal would obey.

    It looks at each piece of text after it is laid out, so that no table, bar or line can forget to; texts are looked at before,
    too, so that they are wrapped as they will be shown.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text, LINES), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and _has_codes(renderable.plain):
            renderable = _written_out(renderable)
        for segment in super().render(renderable, options):
            if segment.control or not _has_codes(segment.text):
                yield segment
            else:
                yield Segment(printable(segment.text, LINES), segment.style)


def _has_codes(text: str) -> bool:
    return any(code not in LINES for code in CODES.findall(text))


def _written_out(text: Text) -> Text:
    """A text without its codes, in one style, since they change where the parts of several begin."""
    safe = text.blank_copy(printable(text.plain, LINES))
    safe.style = text.style
    return safe


def say(text: str, end: str = "\n") -> None:
    """Write to standard error at once, for processes that show no more than lines."""
    sys.stderr.write(printable(text, LINES) + end)
    sys.stderr.flush()


class _PrintableRecord(logging.LogRecord):
    def getMessage(self) -> str:  # noqa: N802 - logging's name
        return printable(super().getMessage(), LINES)


def make_messages_printable() -> None:
    """From now on this process writes out codes in messages; for processes of our own, never where we are a library."""
    formatted = warnings.formatwarning

    def format_warning(*args: Any, **kwargs: Any) -> str:
        return printable(formatted(*args, **kwargs), LINES)

    warnings.formatwarning = format_warning
    logging.setLogRecordFactory(_PrintableRecord)
    sys.excepthook = _show_exception


def _show_exception(error_type: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    sys.stderr.write(printable("".join(traceback.format_exception(error_type, error, where)), LINES))
