"""A user's function by its name, so that a study can be written down and another process finds it."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairtune.core.errors import DataError

FORM = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$"
HINT = "define it with `def` at the top of a module, and give it or its name 'package.module:name'"
Function = Callable[[list[str]], Sequence[str]]


def name_of(given: str | Callable[..., Any]) -> str:
    """The name of a function that is given by its name or itself.

    Raises:
        ValueError: it is not of that form, or it cannot be found by its name.
    """
    if isinstance(given, str):
        if not re.fullmatch(FORM, given):
            raise ValueError(f"{given!r} is not the name of a function; write 'package.module:name'")
        return given
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    found: Any = sys.modules.get(str(module))
    for part in str(name).split("."):
        found = getattr(found, part, None)
    if found is None or found is not given:
        raise ValueError(f"{name or given!r} cannot be found by its name in another process; {HINT}")
    return f"{module}:{name}"


def find_function(name: str) -> Function:
    """Import a function.

    Raises:
        DataError: there is none by that name.
    """
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        where = "Python looks in the folder where fairtune was started and on PYTHONPATH"
        raise DataError(f"augment: function '{name}': there is no module '{error.name}'; {where}.") from None
    except Exception as error:
        raise DataError(f"augment: function '{name}': importing {module} raised {_in_a_line(error)}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            script = f" What a script defines is known to its own process only: {HINT}." if module == "__main__" else ""
            raise DataError(f"augment: function '{name}': {module} has no '{attribute}'.{script}")
        found = getattr(found, part)
    if not callable(found):
        raise DataError(f"augment: function '{name}' is a {type(found).__name__}, which cannot be called.")
    return found  # type: ignore[no-any-return]


def ask(function: Function, name: str, texts: Sequence[str]) -> list[str]:
    """What a function makes of texts, checked.

    Raises:
        DataError: it failed, or did not return as many texts.
    """
    try:
        answers: Any = function(list(texts))
    except Exception as error:
        raise DataError(
            f"augment: function '{name}', given {len(texts):,} texts, raised {_in_a_line(error)}"
        ) from error
    if isinstance(answers, str | bytes | Mapping) or not isinstance(answers, Iterable):
        returned = "None" if answers is None else f"a {type(answers).__name__}"
        raise DataError(f"augment: function '{name}' returned {returned}; it must return a list of texts.")
    listed = list(answers)
    if len(listed) != len(texts):
        raise DataError(
            f"augment: function '{name}' returned {len(listed):,} texts for {len(texts):,}; it must return one for each."
        )
    for text, answer in zip(texts, listed, strict=True):
        if not isinstance(answer, str):
            raise DataError(
                f"augment: function '{name}' returned {answer!r} for the text {text[:60]!r}; it must return a text for each."
            )
    return [str(answer) for answer in listed]


def _in_a_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
