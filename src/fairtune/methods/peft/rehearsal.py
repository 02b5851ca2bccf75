"""An adapter's config made by the library's own code, but without importing the library, which would import torch.

The files that define configs need little more than dataclasses. They are run from their source, and whatever else they import is
absent: a thing without properties. What makes a config this way is taken by the library; where it does not, for whichever reason,
the library itself has the word.
"""

from __future__ import annotations

import builtins
import copy
import importlib.metadata
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

REAL = {*sys.stdlib_module_names, "packaging"}
"""What the files may import as it is."""
FILES = ("config.py", "constants.py", "lycoris_utils.py")
"""What they import of the library, and what is run for it."""


class Absent:
    """What is not imported: it can be a base or a name in an annotation, and nothing else."""

    def __mro_entries__(self, _: tuple[Any, ...]) -> tuple[Any, ...]:
        return ()

    def __bool__(self) -> NoReturn:
        raise TypeError("this is not imported")

    def __eq__(self, _: object) -> NoReturn:
        raise TypeError("this is not imported")

    __hash__ = None  # type: ignore[assignment]


def is_taken(folder: Path, name: str, config: str, settings: Mapping[str, Any]) -> bool:
    """Whether the library's code makes a config of these settings; False also where that cannot be found out in this way.

    Args:
        folder: where the library is installed.
        name: of the adapter type, in lower case.
        config: the name of its config class.
    """
    try:
        made = _run(folder, f"tuners/{name}/config.py")[config]
        made(peft_type=name.upper(), **copy.deepcopy(dict(settings)))
    except Exception:  # whatever it is, the library is asked
        return False
    return True


@cache
def _run(folder: Path, file: str) -> dict[str, Any]:
    """The names that one of the library's files defines.

    Args:
        file: below the folder, with slashes.
    """
    path = folder / file
    here = ["peft", *Path(file).parent.parts]

    def import_name(name: str, _globals: Any = None, _locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        parts = [*here[: len(here) - level + 1], *filter(None, name.split("."))] if level else name.split(".")
        if parts[0] != "peft":
            return builtins.__import__(name, fromlist=fromlist) if parts[0] in REAL else _names(fromlist, {})
        return _names(fromlist, _part(folder, parts[1:]))

    own = {**vars(builtins), "__import__": import_name}
    names: dict[str, Any] = {"__builtins__": own, "__name__": __name__}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), names)
    return names


def _part(folder: Path, parts: list[str]) -> Mapping[str, Any]:
    """What configs need of a module of the library: versions, types of adapters, other configs."""
    if not parts:
        return {"__version__": importlib.metadata.version("peft")}
    if parts[0] == "utils":
        return _run(folder, "utils/peft_types.py")
    place = "/".join(parts)
    for file in (f"{place}.py", f"{place}/config.py"):
        if file.endswith(FILES) and (folder / file).is_file():
            return _run(folder, file)
    return {}


def _names(wanted: Any, known: Mapping[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**{name: known.get(name, Absent()) for name in wanted or ()})
