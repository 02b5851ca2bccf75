"""What libraries say through Python: warnings, log lines and tracebacks, which may quote any data."""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from types import TracebackType
from typing import Any

from fairtune.printable import LINES, printable


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


def _show_exception(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    sys.stderr.write(printable("".join(traceback.format_exception(kind, error, where)), LINES))
