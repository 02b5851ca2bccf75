"""Plug-ins before they are loaded: which code a study or an installed package names, and whether the user allows it to run.

Nothing here executes anything. A plug-in is a module that registers methods or tasks when `fairtune.core.plugins` imports it.
What was allowed is kept in the user's own state folder, never next to a study: a folder from elsewhere cannot bring consent along.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fairtune.core.errors import FairtuneError
from fairtune.core.files import read_json, sha256_of, write_json

PACKAGE = "__init__.py"
STATE = "FAIRTUNE_STATE"
_all_allowed: ContextVar[bool] = ContextVar("all_allowed", default=False)
_allowed_here: dict[str, str] = {}  # by this process, where the state folder may not be written


class PluginError(FairtuneError):
    """A plug-in cannot be used."""


@dataclass(frozen=True)
class Plugin:
    """A module to import and the sha256 of its source; of an installed one also the package and its group of entry points."""

    module: str
    file: str
    sha256: str
    distribution: str | None = None
    version: str | None = None
    group: str | None = None

    @property
    def label(self) -> str:
        """Name and version, or name and the first digits of the hash."""
        return f"{self.distribution or self.module}@{self.version or self.sha256[:8]}"

    @property
    def origin(self) -> str:
        return f"{self.distribution} {self.version}" if self.distribution else self.file

    @property
    def root(self) -> str:
        """The top-level module, which is imported from the file and hashed as a whole."""
        return self.module.partition(".")[0]

    @property
    def is_imported(self) -> bool:
        """Whether this process has imported the file, as the user's own code may have done."""
        file = getattr(sys.modules.get(self.root), "__file__", None)
        return file is not None and Path(file).resolve() == Path(self.file)

    @property
    def now(self) -> Plugin | None:
        """The same with the hash that its source has now; None where the file is gone."""
        file = Path(self.file)
        return replace(self, sha256=source_hash(file)) if file.is_file() else None

    def holds(self, file: Path) -> bool:
        """Whether a file is part of its source."""
        own = Path(self.file)
        return file == own or (own.name == PACKAGE and own.parent in file.parents)

    def identity(self) -> dict[str, Any]:
        """What makes two plug-ins the same, wherever they are on a disk."""
        installed = {"distribution": self.distribution, "version": self.version} if self.distribution else {}
        return {"module": self.module, "sha256": self.sha256, **installed}

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def find_plugin(name: str, folder: Path) -> Plugin:
    """The plug-in that a study in a folder calls `my_module`, `my_module.py` or `package.module`."""
    module = name.removesuffix(".py")
    root = module.partition(".")[0]
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", module, re.ASCII):
        raise PluginError(f"plug-in '{name}': give the name of a Python module, such as my_module or my_module.py.")
    own = [file.resolve() for file in (folder / f"{root}.py", folder / root / PACKAGE) if file.is_file()]
    if (file := own[0] if own else _importable(root)) is None:
        looked = f"there is no {root}.py next to the study file (in {folder}), and Python finds no module '{root}'"
        raise PluginError(f"plug-in '{name}': {looked}.")
    return Plugin(module, str(file), source_hash(file))


def installed_plugins(group: str) -> Iterator[Plugin]:
    """Those that installed packages announce in a group of entry points."""
    for point in sorted(importlib.metadata.entry_points(group=group), key=lambda point: point.name):
        package, version = (point.dist.name, point.dist.version) if point.dist else (point.module, None)
        file = _importable(point.module.partition(".")[0])
        if point.attr or file is None:
            called = f"plug-in {package} {version}: its entry point {point.name} of {group} is '{point.value}'"
            raise PluginError(f"{called}; it must name a module that is there, such as {point.module}.")
        yield Plugin(point.module, str(file), source_hash(file), package, version, group)


def source_hash(file: Path) -> str:
    """The sha256 of a single file; of a package, over the hashes of all its Python files."""
    if file.name != PACKAGE:
        return sha256_of(file)
    parts = {part.relative_to(file.parent).as_posix(): sha256_of(part) for part in sorted(file.parent.rglob("*.py"))}
    return hashlib.sha256("".join(f"{name}\0{digest}\n" for name, digest in parts.items()).encode()).hexdigest()


class ConsentNeeded(FairtuneError):  # noqa: N818 - an answer helps, nothing is wrong
    """A study names code that the user has not allowed yet; nothing of it was executed."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self.files = list(dict.fromkeys(plugin.file for plugin in plugins))
        listed = "\n".join(f"  {file}" for file in self.files)
        self.question = f"this study names plug-ins. They are code that runs with your rights; read it first:\n{listed}"
        super().__init__(
            f"{self.question}\nNothing was executed. If you trust this code, add --allow-plugins (in Python allow_plugins=True); "
            "that is needed once per file."
        )


@contextlib.contextmanager
def plugins_allowed(allowed: bool = True) -> Iterator[None]:
    """Every plug-in that a study names meanwhile is allowed, and remembered; with False, only what was allowed before."""
    before = _all_allowed.set(allowed or _all_allowed.get())
    try:
        yield
    finally:
        _all_allowed.reset(before)


def require_consent(plugins: Iterable[Plugin]) -> None:
    """Go on if the user allowed these files, in this call or before, or has imported them.

    A file that was allowed stays so when it is edited: its author should not be asked at every run, and changed code is dated in
    the study's registration anyway.

    Raises:
        ConsentNeeded: naming every file that was not.
    """
    known = allowed_files()
    if new := [plugin for plugin in plugins if plugin.file not in known and not plugin.is_imported]:
        if not _all_allowed.get():
            raise ConsentNeeded(new)
        allow_files(plugin.file for plugin in new)


def allowed_files() -> dict[str, str]:
    """The files that the user allowed, each with the time."""
    return {**(read_json(_state_file()) or {}), **_allowed_here}


def allow_files(files: Iterable[str]) -> None:
    """Remember that the user allows these files to be executed."""
    _allowed_here.update(dict.fromkeys(files, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())))
    with contextlib.suppress(OSError):  # without a home that can be written, the next process asks again
        _state_file().parent.mkdir(parents=True, exist_ok=True)
        write_json(_state_file(), allowed_files())


def _state_file() -> Path:
    """`FAIRTUNE_STATE/plugins.json`, else in the user's state folder."""
    named, home = os.environ.get(STATE, "").strip(), os.environ.get("XDG_STATE_HOME", "").strip() or "~/.local/state"
    return Path(named or f"{home}/fairtune").expanduser() / "plugins.json"


def _importable(root: str) -> Path | None:
    """The file of a module that Python can import."""
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(root)
        return Path(spec.origin).resolve() if spec and spec.origin and spec.origin.endswith(".py") else None
    return None
