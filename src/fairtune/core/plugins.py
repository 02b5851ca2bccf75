"""Plug-ins: modules that register methods or tasks when they are imported.

Installed packages announce them with entry points; a study names others, which are imported once the user has allowed their files.
What was allowed is kept in the user's own state folder, never next to a study: a folder from elsewhere cannot bring consent along.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from fairtune.core.errors import FairtuneError
from fairtune.core.files import read_json, sha256_of, write_json

PACKAGE = "__init__.py"
STATE = "FAIRTUNE_STATE"
_all_allowed: ContextVar[bool] = ContextVar("all_allowed", default=False)
_loaded: dict[str, Plugin] = {}
_noted: dict[tuple[str, str], tuple[str, Callable[[], object]]] = {}  # by which module, and how to undo it
_loading: list[str] = []


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
        return _root(self.module)

    @property
    def is_imported(self) -> bool:
        """Whether this process has imported the file, as the user's own code may have done."""
        file = getattr(sys.modules.get(self.root), "__file__", None)
        return file is not None and Path(file).resolve() == Path(self.file)

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


def note(registry: str, name: str, module: str, forget: Callable[[], object]) -> None:
    """Called by a registry (`method`, `task`) for each thing that a module registers; `forget` takes it out again."""
    _noted[registry, name] = _loading[-1] if _loading else module, forget


def plugin_of(registry: str, name: str) -> Plugin | None:
    """The plug-in that registered a thing; None if it was not a plug-in."""
    module, _ = _noted.get((registry, name), ("", None))
    return _loaded.get(module) or next((one for one in _loaded.values() if one.root == _root(module)), None)


def loaded_plugins() -> tuple[Plugin, ...]:
    """All plug-ins of this process, in the order of loading."""
    return tuple(_loaded.values())


def line_of(error: BaseException) -> str:
    """` (mine.py, line 3)`: the innermost line of a plug-in that an error came through; empty where there is none."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = Path(frame.f_code.co_filename)
        if any(plugin.holds(file) for plugin in _loaded.values()):
            return f" ({file.name}, line {line})"
    return ""


def find_plugin(name: str, folder: Path) -> Plugin:
    """The plug-in that a study in a folder calls `my_module`, `my_module.py` or `package.module`."""
    module = name.removesuffix(".py")
    root = _root(module)
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", module, re.ASCII):
        raise PluginError(f"plug-in '{name}': give the name of a Python module, such as my_module or my_module.py.")
    own = [file.resolve() for file in (folder / f"{root}.py", folder / root / PACKAGE) if file.is_file()]
    if (file := own[0] if own else _importable(root)) is None:
        looked = f"there is no {root}.py next to the study file (in {folder}), and Python finds no module '{root}'"
        raise PluginError(f"plug-in '{name}': {looked}.")
    return Plugin(module, str(file), _source_hash(file))


def _importable(root: str) -> Path | None:
    """The file of a module that Python can import."""
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(root)
        return Path(spec.origin).resolve() if spec and spec.origin and spec.origin.endswith(".py") else None
    return None


def _source_hash(file: Path) -> str:
    """The sha256 of a single file; of a package, over the hashes of all its Python files."""
    if file.name != PACKAGE:
        return sha256_of(file)
    parts = {part.relative_to(file.parent).as_posix(): sha256_of(part) for part in sorted(file.parent.rglob("*.py"))}
    return hashlib.sha256("".join(f"{name}\0{digest}\n" for name, digest in parts.items()).encode()).hexdigest()


@contextmanager
def plugins_allowed(allowed: bool = True) -> Iterator[None]:
    """Every plug-in that a study names meanwhile is allowed, and remembered; with False, only what was allowed before."""
    before = _all_allowed.set(allowed or _all_allowed.get())
    try:
        yield
    finally:
        _all_allowed.reset(before)


def allowed_files() -> dict[str, str]:
    """The files that the user allowed, each with the time.

    One that was allowed stays so when it is edited: its author should not be asked at every run, and changed code is dated in the
    study's registration anyway.
    """
    return read_json(_state_file()) or {}


def allow_files(files: Iterable[str]) -> None:
    """Remember that the user allows these files to be executed."""
    allowed = allowed_files() | dict.fromkeys(files, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    with suppress(OSError):  # without a home that can be written, the next process asks again
        _state_file().parent.mkdir(parents=True, exist_ok=True)
        write_json(_state_file(), allowed)


def _state_file() -> Path:
    """`FAIRTUNE_STATE/plugins.json`, else in the user's state folder."""
    named, home = os.environ.get(STATE, "").strip(), os.environ.get("XDG_STATE_HOME", "").strip() or "~/.local/state"
    return Path(named or f"{home}/fairtune").expanduser() / "plugins.json"


@cache
def discover(group: str) -> None:
    """Load every plug-in that an installed package announces in a group of entry points; once for each group."""
    for point in sorted(importlib.metadata.entry_points(group=group), key=lambda point: point.name):
        package, version = (point.dist.name, point.dist.version) if point.dist else (point.module, None)
        file = _importable(_root(point.module))
        if point.attr or file is None:
            called = f"plug-in {package} {version}: its entry point {point.name} of {group} is '{point.value}'"
            raise PluginError(f"{called}; it must name a module that is there, such as {point.module}.")
        load_plugin(Plugin(point.module, str(file), _source_hash(file), package, version, group))


def load_named(names: Sequence[str], folder: Path) -> dict[str, PluginError]:
    """Load what a study in a folder names; returns what is wrong, by name.

    Raises:
        ConsentNeeded: the user has neither allowed nor imported one of them; nothing of any was executed.
    """
    found: dict[str, Plugin] = {}
    errors: dict[str, PluginError] = {}
    for name in names:
        try:
            found[name] = find_plugin(name, folder)
        except PluginError as error:
            errors[name] = error
    known = allowed_files()
    if new := [plugin for plugin in found.values() if plugin.file not in known and not plugin.is_imported]:
        if not _all_allowed.get():
            raise ConsentNeeded(new)
        allow_files(plugin.file for plugin in new)
    for name, plugin in found.items():
        try:
            load_plugin(plugin)
        except PluginError as error:
            errors[name] = error
    return errors


def load_plugin(plugin: Plugin) -> Plugin:
    """Import a plug-in, unless the same code is loaded; other code of the same name is forgotten."""
    same = [one for one in _loaded.values() if one.root == plugin.root]
    if any((one.file, one.sha256) != (plugin.file, plugin.sha256) for one in same):
        forget_plugin(plugin.root)
    elif plugin.module in _loaded:
        return _loaded[plugin.module]
    imported, before = plugin.root in sys.modules, sys.dont_write_bytecode
    _loaded[plugin.module] = plugin
    _loading.append(plugin.module)
    sys.dont_write_bytecode = True  # none is left next to a study, so what runs is what was hashed
    try:
        if not imported:
            _import(plugin.root, Path(plugin.file))
        elif not plugin.is_imported:
            raise PluginError(f"another module is called '{plugin.root}'; give it another name")
        importlib.import_module(plugin.module)
        if not any(_root(module) == plugin.root for module, _ in _noted.values()):
            raise PluginError("importing it registers nothing; it must call a `register` of fairtune")
    except (Exception, SystemExit) as error:
        first = next(iter(str(error).strip().splitlines()), "").removesuffix(".")
        reason = first if isinstance(error, PluginError) else f"importing it raised {type(error).__name__}: {first}"
        message = f"plug-in {plugin.distribution or plugin.module} ({plugin.origin}): {reason}{line_of(error)}."
        forget_plugin(plugin.root, imported=not imported)  # what the user's own code imported stays
        raise PluginError(message) from error
    finally:
        sys.dont_write_bytecode = before
        _loading.pop()
    return plugin


def take_plugins(planned: Iterable[Plugin]) -> None:
    """Load in a worker what the plan was made with; the user allowed it when the study was read.

    Raises:
        PluginError: one is gone, or is not what it was.
    """
    for before in planned:
        if before.group is not None:
            discover(before.group)
        elif (file := Path(before.file)).is_file():
            load_plugin(replace(before, sha256=_source_hash(file)))
        found = _loaded.get(before.module)
        if found is None or found.identity() != before.identity():
            is_now = "is not there" if found is None else f"is {found.label} now"
            raise PluginError(
                f"the study was planned with plug-in {before.label}, which {is_now} ({before.origin}); bring it back, or run "
                "`fairtune run` again to plan again."
            )


def forget_plugin(root: str, imported: bool = True) -> None:
    """Undo what a top-level module registered, so that it can be loaded again; with `imported`, import it again, too."""
    for plugin in [one for one in _loaded.values() if one.root == root]:
        del _loaded[plugin.module]
    for key, (module, forget) in list(_noted.items()):
        if _root(module) == root:
            forget()
            del _noted[key]
    for name in [name for name in sys.modules if imported and _root(name) == root]:
        del sys.modules[name]


def _import(root: str, file: Path) -> None:
    inside = [str(file.parent)] if file.name == PACKAGE else None
    spec = importlib.util.spec_from_file_location(root, file, submodule_search_locations=inside)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[root] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[root])


def _root(module: str) -> str:
    return module.partition(".")[0]
