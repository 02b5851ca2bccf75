"""What fairtune raises when something is for the user to fix: one clear message, never a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class FairtuneError(Exception):
    """A mistake in what the user gave; the command line prints it and exits with code 2."""

    def as_json(self) -> list[dict[str, Any]]:
        """Its problems one by one, where it has several."""
        return []


class DataError(FairtuneError):
    """A task's data is missing, unreadable or unfit."""


class ModelError(FairtuneError):
    """A model cannot be found, read or used."""


class LedgerError(FairtuneError):
    """A runs folder cannot be used as asked."""


class DeviceError(FairtuneError):
    """The devices that a study asks for are not there."""


class RunFailure(Exception):  # noqa: N818 - it is an outcome that gets recorded, not a user's mistake
    """A run cannot go on; the reason is recorded in its ledger and the study goes on."""


class Stopped(Exception):  # noqa: N818 - a signal asked for it
    """This process was asked to stop; what was done so far is saved."""


class LeaseLost(Exception):  # noqa: N818 - no one's mistake; the process that has the lease now goes on
    """Another process has taken over what this one was doing, so this one must write nothing more of it."""


def nearest(word: str, allowed: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` for the closest allowed word, or an empty string."""
    close = difflib.get_close_matches(str(word), [str(a) for a in allowed], n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""


def one_of(words: Iterable[object], most: int | None = None) -> str:
    """A readable list of what is allowed; of many, the first and how many more there are."""
    names = [str(word) for word in words]
    more = len(names) - (len(names) if most is None else most)
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def shown(value: Any) -> str:
    """A value that a user gave, short enough for a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of too many digits, data that contains itself
        return "a value too large to be shown"
    return text if len(text) <= 60 else text[:57] + "..."
